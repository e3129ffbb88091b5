/**
 * XML Schema regular expressions as JavaScript's ([xmlschema-2] appendix F): anchored at both ends, `^` and `$` are plain characters,
 * `\i` and `\c` are name characters, `[a-z-[aeiou]]` subtracts. Blocks (`\p{IsGreek}`) have no counterpart and throw.
 */

const NAME_START = ':A-Z_a-z\\u{C0}-\\u{D6}\\u{D8}-\\u{F6}\\u{F8}-\\u{2FF}\\u{370}-\\u{37D}\\u{37F}-\\u{1FFF}\\u{200C}-\\u{200D}\\u{2070}-\\u{218F}\\u{2C00}-\\u{2FEF}\\u{3001}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFFD}\\u{10000}-\\u{EFFFF}'
const NAME = `${NAME_START}\\-.0-9\\u{B7}\\u{300}-\\u{36F}\\u{203F}-\\u{2040}`

/** What an escape stands for, as the inside of a class. `\d` and `\w` are Unicode's here. */
const CLASSES: Readonly<Record<string, string>> = {
  d: '\\p{Nd}', D: '\\P{Nd}', s: ' \\t\\n\\r', S: '[^ \\t\\n\\r]', w: '[^\\p{P}\\p{Z}\\p{C}]', W: '\\p{P}\\p{Z}\\p{C}', i: NAME_START, I: `[^${NAME_START}]`, c: NAME, C: `[^${NAME}]`
}

/** A character as itself; the `v` flag wants other characters escaped inside of classes than outside, and refuses needless escapes. */
const plain = (c: string): string => /[\^$\\.*+?()[\]{}|/]/.test(c) ? `\\${c}` : c
const plainInClass = (c: string): string => /[\^$\\.*+?()[\]{}|/\-&!#%,:;<=>@`~]/.test(c) ? `\\${c}` : c

/** Throws SyntaxError when the pattern is none or uses a block. */
export function compilePattern (pattern: string): RegExp {
  const chars = [...pattern]
  let at = 0

  const escape = (inClass: boolean): string => {
    const c = chars[at++]
    if (c === undefined) throw new SyntaxError('ends in a backslash')
    if (c === 'p' || c === 'P') {
      const end = chars.indexOf('}', at)
      const name = chars.slice(at + 1, end).join('')
      if (chars[at] !== '{' || end < 0 || name.startsWith('Is')) throw new SyntaxError(`character block \\${c}{${name}} is not supported`)
      at = end + 1
      return `\\${c}{${name}}`
    }
    const set = CLASSES[c]
    if (set !== undefined) return inClass ? set : set.startsWith('[') || set.startsWith('\\P') ? set : `[${set}]`
    if (c === 'n' || c === 'r' || c === 't') return `\\${c}`
    return inClass ? plainInClass(c) : plain(c)
  }

  const charClass = (): string => {
    let negated = false
    if (chars[at] === '^') { negated = true; at++ }
    let inside = ''
    let minus = ''
    for (let first = true; ; first = false) {
      const c = chars[at++]
      if (c === undefined) throw new SyntaxError('a [ is not closed')
      if (c === ']' && !first) break
      if (c === '\\') inside += escape(true)
      else if (c === '-' && chars[at] === '[') {
        at++
        minus = charClass()
      } else if (c === '-' && !first && chars[at] !== ']' && /[^\\]$/.test(inside)) inside += '-'
      else inside += plainInClass(c)
    }
    const set = `[${negated ? '^' : ''}${inside}]`
    return minus === '' ? set : `[${set}--${minus}]`
  }

  let out = ''
  while (at < chars.length) {
    const c = chars[at++] as string
    if (c === '\\') out += escape(false)
    else if (c === '[') out += charClass()
    else if (c === '.') out += '[^\\n\\r]'
    else if ('()|*+?{},'.includes(c)) out += c
    else out += plain(c)
  }
  return new RegExp(`^(?:${out.replace(/\((?!\?)/g, '(?:')})$`, 'v')
}
