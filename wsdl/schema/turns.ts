/**
 * In which order the members of a value are written: that of the schema, and where a group repeats, its elements in turns (a b a b). A reader that has seen
 * another order there says so in `$order`, so that nothing is lost.
 */
import type { ContentModel, Leaf, Member, Particle } from './model.ts'
import { Mismatch } from './primitives.ts'

/** What there is to write, and where it goes. */
export interface Supply {
  /** How many of this member are not yet written. */
  left (member: Member): number
  /** The next `n` of it stand here. */
  take (leaf: Leaf, member: Member, n: number): void
}

type Model = Pick<ContentModel, 'members' | 'isPlain'>

/** Hands out all that `particle` has places for, in its order. Throws Mismatch for what is missing, too much, or excluded by something else. */
export function walk (particle: Particle, model: Model, supply: Supply): void {
  if (particle.kind === 'element' || particle.kind === 'any') { leaf(particle, model, supply); return }
  const { min, max } = particle
  if (max === 1) {
    if (min > 0 || has(particle, model, supply)) once(particle, model, supply)
    return
  }
  let times = 0
  for (; times < max && has(particle, model, supply); times++) once(particle, model, supply)
  for (; times < min; times++) once(particle, model, supply)
}

// Functions with all that they need as arguments, and no closures: this runs for every object of every reply.

function leaf (one: Leaf, model: Model, supply: Supply): void {
  const member = model.members.get(one) as Member
  const { min, max } = one
  const left = supply.left(member)
  const n = model.isPlain ? left : Math.min(left, max)
  if (n < min) throw new Mismatch(n === 0 ? `lacks ${member.key}` : `has ${n} ${member.key}, but needs ${min}`)
  if (n > max) throw new Mismatch(`has ${n} ${member.key}, but ${max} ${max === 1 ? 'is' : 'are'} the most`)
  if (n > 0) supply.take(one, member, n)
}

function once (particle: Exclude<Particle, Leaf>, model: Model, supply: Supply): void {
  if (particle.kind !== 'choice') {
    for (const item of particle.items) walk(item, model, supply)
    return
  }
  const chosen = particle.items.filter(item => has(item, model, supply))
  if (chosen.length > 1 && model.isPlain) throw new Mismatch(`has ${chosen.map(item => names(item, model)).join(' and ')}, but only one of them is allowed`)
  const one = chosen[0] ?? particle.items.find(canBeEmpty)
  if (one) walk(one, model, supply)
  else if (particle.items.length > 0) throw new Mismatch(`lacks one of ${particle.items.map(item => names(item, model)).join(', ')}`)
}

function has (particle: Particle, model: Model, supply: Supply): boolean {
  return particle.kind === 'element' || particle.kind === 'any' ? supply.left(model.members.get(particle) as Member) > 0 : particle.items.some(item => has(item, model, supply))
}

function names (particle: Particle, model: Model): string {
  return particle.kind === 'element' || particle.kind === 'any' ? (model.members.get(particle) as Member).key : particle.items.map(item => names(item, model)).join('/')
}

function canBeEmpty (particle: Particle): boolean {
  if (particle.min === 0) return true
  if (particle.kind === 'element' || particle.kind === 'any') return false
  return particle.kind === 'choice' ? particle.items.some(canBeEmpty) : particle.items.every(canBeEmpty)
}

/** Whether members that stood in this order, by their keys, would be written so without being told. */
export function isInTurn (content: Particle, model: ContentModel, order: readonly string[]): boolean {
  const counts = new Map<string, number>()
  for (const key of order) counts.set(key, (counts.get(key) ?? 0) + 1)
  let at = 0
  let isSame = true
  try {
    walk(content, model, {
      left: ({ key }) => counts.get(key) ?? 0,
      take: (_, { key }, n) => {
        for (let i = 0; i < n; i++) isSame &&= order[at++] === key
        counts.set(key, (counts.get(key) as number) - n)
      }
    })
  } catch (error) {
    if (error instanceof Mismatch) return false // valid as it stood, but not findable by taking turns
    throw error
  }
  return isSame && at === order.length
}
