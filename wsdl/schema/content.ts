/**
 * The content of a complex type as an automaton: one position for each place where an element may stand, and for each position which may follow
 * (Glushkov's construction). A schema is deterministic ([xmlschema-1] 3.8.6 "unique particle attribution"), so one look at a name decides.
 *
 * An element's own minOccurs/maxOccurs are counted; a *group's* are unrolled, up to MOST_POSITIONS; a longer one may then occur any number of times
 * (`isUncounted`, which is told when the contract is loaded).
 */
import { qname } from '../../wire/xml/events.ts'
import type { ComplexType, ContentModel, Leaf, Member, Particle, Position } from './model.ts'

const MOST_POSITIONS = 2000

/** Each leaf of the tree, in order, with the most times that its parents let it occur. */
function * leaves (particle: Particle | undefined, times = 1): Generator<{ leaf: Leaf, times: number, inRepeatedGroup: boolean }> {
  if (!particle) return
  if (particle.kind === 'element' || particle.kind === 'any') yield { leaf: particle, times: times * particle.max, inRepeatedGroup: times > 1 }
  else for (const item of particle.items) yield * leaves(item, times * particle.max)
}

function membersOf (content: Particle | undefined): { members: Map<Leaf, Member>, isPlain: boolean } {
  const keys = new Map<Leaf, string>()
  const owner = new Map<string, string>()
  const most = new Map<string, number>()
  const particles = new Map<string, number>()
  let isPlain = true
  for (const { leaf, times, inRepeatedGroup } of leaves(content)) {
    if (inRepeatedGroup) isPlain = false
    let key = '$xml'
    if (leaf.kind === 'element') {
      const { local, name } = leaf.element
      key = owner.has(local) && owner.get(local) !== name ? name : local
      owner.set(key, name)
    }
    keys.set(leaf, key)
    // Two places with the same name: at most one of them counts in a choice, but a stable shape is worth more than telling.
    most.set(key, (most.get(key) ?? 0) + times)
    particles.set(key, (particles.get(key) ?? 0) + 1)
    if ((particles.get(key) as number) > 1) isPlain = false
  }
  return { members: new Map([...keys].map(([leaf, key]) => [leaf, { key, isArray: (most.get(key) as number) > 1 }])), isPlain }
}

interface Piece { readonly isNullable: boolean, readonly first: readonly Position[], readonly last: readonly Position[], readonly size: number }

const EMPTY: Piece = { isNullable: true, first: [], last: [], size: 0 }

/** Builds the automaton of `content`. */
class Builder {
  readonly #members: ReadonlyMap<Leaf, Member>
  readonly #follow = new Map<Position, Set<Position>>()
  readonly #leaf = new Map<Position, Leaf>()

  constructor (members: ReadonlyMap<Leaf, Member>) { this.#members = members }

  build (content: Particle | undefined): Position {
    const whole = content ? this.#piece(content) : EMPTY
    const start: Position = { leaf: undefined, element: undefined, isChecked: true, member: { key: '', isArray: false }, min: 0, max: 0, next: new Map(), wild: [], canEnd: whole.isNullable, restarts: false }
    for (const position of whole.last) position.canEnd = true
    this.#edges(start, whole.first)
    for (const [position, follow] of this.#follow) this.#edges(position, follow)
    return start
  }

  #edges (from: Position, to: Iterable<Position>): void {
    for (const position of to) {
      const leaf = this.#leaf.get(position) as Leaf
      if (leaf.kind === 'any') { from.wild.push({ any: leaf, to: position }); continue }
      const { uri, local } = leaf.element
      const edges = from.next.get(local)
      const edge = { uri, to: position }
      if (edges) edges.push(edge)
      else from.next.set(local, [edge])
    }
  }

  #piece (particle: Particle): Piece {
    if (particle.kind === 'element' || particle.kind === 'any') return this.#place(particle)
    const { min, max } = particle
    const once = (): Piece => particle.kind === 'choice' ? this.#choice(particle.items) : this.#sequence(particle.items.map(item => () => this.#piece(item)))
    if (max === 1) return optional(once(), min === 0)
    const first = once()
    const copies = Number.isFinite(max) ? max : Math.max(min, 1)
    if (copies * first.size > MOST_POSITIONS || copies === 1) return optional(this.#loop(first), min === 0)
    // min copies that must be, then either a loop or copies that may be; all of them one sequence.
    const rest = Array.from({ length: copies - 1 }, (_, i) => () => {
      const copy = once()
      return optional(!Number.isFinite(max) && i === copies - 2 ? this.#loop(copy) : copy, i + 1 >= min)
    })
    return optional(this.#sequence([() => first, ...rest]), min === 0)
  }

  #place (leaf: Leaf): Piece {
    const position: Position = { leaf, element: leaf.kind === 'element' ? leaf.element : undefined, isChecked: leaf.kind === 'element' || leaf.isChecked, member: this.#members.get(leaf) as Member, min: leaf.min, max: leaf.max, next: new Map(), wild: [], canEnd: false, restarts: false }
    this.#leaf.set(position, leaf)
    this.#follow.set(position, new Set(leaf.max > 1 ? [position] : []))
    return { isNullable: leaf.min === 0, first: [position], last: [position], size: 1 }
  }

  #sequence (items: ReadonlyArray<() => Piece>): Piece {
    let { isNullable, first, last, size } = EMPTY
    for (const make of items) {
      const item = make()
      this.#join(last, item.first)
      first = isNullable ? [...first, ...item.first] : first
      last = item.isNullable ? [...last, ...item.last] : item.last
      isNullable = isNullable && item.isNullable
      size += item.size
    }
    return { isNullable, first, last, size }
  }

  #choice (items: readonly Particle[]): Piece {
    const pieces = items.map(item => this.#piece(item))
    return { isNullable: pieces.length === 0 || pieces.some(p => p.isNullable), first: pieces.flatMap(p => p.first), last: pieces.flatMap(p => p.last), size: pieces.reduce((n, p) => n + p.size, 0) }
  }

  #loop (piece: Piece): Piece {
    this.#join(piece.last, piece.first)
    return piece
  }

  #join (last: readonly Position[], first: readonly Position[]): void {
    for (const position of last) {
      for (const next of first) {
        if (next === position) position.restarts = true
        this.#follow.get(position)?.add(next)
      }
    }
  }
}

/** Whether a group in here repeats too often to be unrolled. */
export function isUncounted (content: Particle | undefined): boolean {
  let found = false
  const size = (particle: Particle): number => {
    if (particle.kind === 'element' || particle.kind === 'any') return 1
    const once = particle.items.reduce((sum, item) => sum + size(item), 0)
    const copies = Number.isFinite(particle.max) ? particle.max : Math.max(particle.min, 1)
    if (copies === 1 || copies * once <= MOST_POSITIONS) return copies * once
    found = true
    return once
  }
  if (content) size(content)
  return found
}

const optional = (piece: Piece, is: boolean): Piece => is && !piece.isNullable ? { ...piece, isNullable: true } : piece

/** The model of a type, made once. */
export function contentOf (type: ComplexType): ContentModel {
  if (type.model) return type.model
  const { members, isPlain } = membersOf(type.content)
  const all = allOf(type.content)
  const builder = new Builder(members)
  const elements = [...members.keys()].flatMap(leaf => leaf.kind === 'element' ? [leaf.element] : [])
  const start = builder.build(all ? undefined : type.content)
  type.model = {
    members,
    keys: new Set([...members.values()].map(m => m.key)),
    names: new Set(elements.map(element => element.name)),
    start,
    all: all && new Map(all.items.flatMap(item => {
      if (item.kind !== 'element') return []
      const { element, min } = item
      return [[element.name, { leaf: item, element, isChecked: true, member: members.get(item) as Member, min, max: 1, next: new Map(), wild: [], canEnd: false, restarts: false }]]
    })),
    isPlain,
    namespaces: [...new Set(elements.map(element => element.uri))].filter(uri => uri !== '')
  }
  return type.model
}

/** xs:all stands alone in a type, perhaps wrapped by a group reference or an extension of an empty base. */
function allOf (content: Particle | undefined): Extract<Particle, { kind: 'sequence' | 'choice' | 'all' }> | undefined {
  if (content?.kind === 'all') return content
  return content?.kind === 'sequence' && content.items.length === 1 ? allOf(content.items[0]) : undefined
}

/** The place that `{uri}local` leads to from `from`, with how often it was met in a row; undefined: not allowed there. */
export function step (from: Position, count: number, uri: string, local: string): { to: Position, count: number } | undefined {
  const isDone = count >= from.min
  for (const edge of from.next.get(local) ?? []) {
    if (edge.uri !== uri) continue
    if (edge.to !== from) return isDone ? { to: edge.to, count: 1 } : undefined
    if (count < from.max && from.max > 1) return { to: from, count: count + 1 }
    return from.restarts && isDone ? { to: from, count: 1 } : undefined
  }
  for (const { any, to } of from.wild) if (any.allows(uri) && (to !== from ? isDone : count < from.max)) return { to, count: to === from ? count + 1 : 1 }
  return undefined
}

/** What may stand at a place, for messages. */
export function expected (from: Position, count: number): string {
  const names = [...from.next].flatMap(([local, edges]) => edges.filter(e => e.to !== from || count < from.max).map(e => qname(e.uri, local)))
  if (from.wild.length > 0) names.push('any element')
  if (from.canEnd && count >= from.min) names.push('the end')
  return names.length === 0 ? 'nothing' : names.slice(0, 6).join(', ') + (names.length > 6 ? ', …' : '')
}
