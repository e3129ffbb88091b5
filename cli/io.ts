/** What a command may touch of the process: handed in by entry.ts, and by tests. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  /** One line, or several, on stdout: answers only. */
  out (text: string): void
  /** One line on stderr: everything else. */
  err (text: string): void
  /** Aborted when the user wants the command to end (Ctrl-C, SIGTERM). */
  readonly signal: AbortSignal
  /** Aborted when the user says so again: no more waiting for a good end. */
  readonly hurry: AbortSignal
}

/** A result: as one JSON document with `--json`, else as lines for people. */
export function print (io: Io, asJson: boolean | undefined, value: unknown, lines: () => string[]): void {
  if (asJson) io.out(JSON.stringify(value))
  else for (const line of lines()) io.out(line)
}

/** Columns under their heads; numbers to the right. */
export function table (heads: readonly string[], rows: ReadonlyArray<ReadonlyArray<string | number>>): string[] {
  const cells = [heads, ...rows].map(row => row.map(String))
  const widths = heads.map((_, i) => Math.max(...cells.map(row => row[i]?.length ?? 0)))
  const isNumber = heads.map((_, i) => rows.length > 0 && rows.every(row => typeof row[i] === 'number'))
  return cells.map(row => row.map((cell, i) => isNumber[i] ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)).join('  ').trimEnd())
}

/** The same with the last column broken at blanks, so that no line is longer than `width` where words allow. */
export function wrappedTable (heads: readonly string[], rows: ReadonlyArray<ReadonlyArray<string>>, width: number): string[] {
  const last = heads.length - 1
  const before = heads.slice(0, last).reduce((sum, head, i) => sum + 2 + Math.max(head.length, ...rows.map(row => row[i]?.length ?? 0)), 0)
  return table(heads, rows.flatMap(row => folded(row[last] ?? '', width - before).map((line, i) => i === 0 ? [...row.slice(0, last), line] : [...heads.slice(0, last).map(() => ''), line])))
}

function folded (text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}

/** A text of anybody's on one line, without anything that a terminal takes for an order. */
export function oneLine (text: string, most: number): string {
  const plain = text.replace(/\s+/g, ' ').replace(/\p{Cc}/gu, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return plain.length <= most ? plain : `${plain.slice(0, most - 1)}…`
}

/** `name  value` lines. */
export function facts (pairs: ReadonlyArray<readonly [name: string, value: string | number | boolean | null | undefined]>): string[] {
  const known = pairs.filter(([, value]) => value !== undefined && value !== null)
  const width = Math.max(...known.map(([name]) => name.length))
  return known.map(([name, value]) => `${name.padEnd(width)}  ${String(value)}`)
}

/** Resolves when the signal aborts, or when `orElse` does, which frees the listeners of a wait that nobody needs any more. */
export function aborted (signal: AbortSignal, orElse?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true, ...(orElse === undefined ? {} : { signal: orElse }) })
    orElse?.addEventListener('abort', () => resolve(), { once: true })
  })
}
