import { HOOKS, type CustomDispatcher, type CustomRequest, type CustomResponse, type CustomState, type Hook } from '../custom-broker.ts'
import { object, Rubbish, shown } from './custom-verdict.ts'

/** What a program says of itself, answering `GET /`. */
export interface Description {
  readonly name: string
  readonly hooks: ReadonlySet<Hook>
  /** Calls that it takes at a time, each on a connection of its own. */
  readonly concurrency: number
  /** Hooks that are given markup; the others see of a request what is beside its body. */
  readonly bodies: ReadonlySet<Hook>
}

const DESCRIPTION = ['name', 'hooks', 'concurrency', 'bodies']
const ANSWER = ['result', 'state']
const CHANGES = ['set', 'delete']
/** chooseDispatcher is told of up to 256 requests at once: bodies would make that gigabytes. */
const MAY_HAVE_BODIES: readonly Hook[] = ['onRequest', 'onResponse', 'onGather']
const MOST_AT_A_TIME = 64
const LONGEST_NAME = 100

/** Throws Rubbish that says what was given. */
export function description (value: unknown): Description {
  const { name, hooks, concurrency = 1, bodies = MAY_HAVE_BODIES } = known(object(value, 'the description'), DESCRIPTION, 'the description')
  if (typeof name !== 'string' || name === '' || name.length > LONGEST_NAME) throw new Rubbish(`name is a text of 1 to ${LONGEST_NAME} characters, not ${shown(name)}`)
  if (!Number.isInteger(concurrency) || (concurrency as number) < 1 || (concurrency as number) > MOST_AT_A_TIME) throw new Rubbish(`concurrency is a whole number from 1 to ${MOST_AT_A_TIME}, not ${shown(concurrency)}`)
  const listed = hooksOf('hooks', hooks, HOOKS)
  if (listed.size === 0) throw new Rubbish(`hooks names none of ${HOOKS.join(', ')}`)
  return { name, hooks: listed, concurrency: concurrency as number, bodies: hooksOf('bodies', bodies, MAY_HAVE_BODIES) }
}

function hooksOf (what: string, value: unknown, of: readonly Hook[]): Set<Hook> {
  const wrong = Array.isArray(value) ? value.find(name => !of.includes(name as Hook)) as unknown : value
  if (!Array.isArray(value) || wrong !== undefined) throw new Rubbish(`${what} is a list of ${of.join(', ')}; ${shown(wrong)} is none of it`)
  return new Set(value as Hook[])
}

/** An answer to a hook: its changes of the state are applied, and what it gives back is returned, unchecked. Throws Rubbish, or what CustomState throws. */
export function applied (answer: unknown, state: CustomState): unknown {
  if (answer === undefined || answer === null) return undefined
  const { result, state: changes } = known(object(answer, 'an answer'), ANSWER, 'an answer')
  if (changes !== undefined && changes !== null) {
    const { set = {}, delete: gone = [] } = known(object(changes, 'state'), CHANGES, 'state')
    if (!Array.isArray(gone) || gone.some(key => typeof key !== 'string')) throw new Rubbish(`state.delete is a list of names, not ${shown(gone)}`)
    for (const key of gone as string[]) state.delete(key)
    for (const [key, value] of Object.entries(object(set, 'state.set'))) state.set(key, value)
  }
  return result ?? undefined
}

function known (said: Record<string, unknown>, names: readonly string[], what: string): Record<string, unknown> {
  const strange = Object.keys(said).find(key => !names.includes(key))
  if (strange !== undefined) throw new Rubbish(`${what} has ${names.join(', ')}; it had ${shown(strange)}: ${shown(said)}`)
  return said
}

/** Counts the markup of one call while it is put together, and stops at the limit. */
export class CallBodies {
  readonly #most: number
  #sum = 0

  constructor (most: number) { this.#most = most }

  of (message: { readonly body: string }): string {
    const { body } = message
    this.#sum += body.length
    if (this.#sum > this.#most) throw new RangeError(`would be sent over ${this.#most} characters of bodies (16 × maxMessageSize)`)
    return body
  }
}

export const requestJson = (request: CustomRequest, bodies?: CallBodies): object => ({
  clientId: request.clientId,
  messageId: request.messageId,
  action: request.action,
  userData: request.userData, // undefined is left out
  lane: request.lane,
  ...(bodies === undefined ? {} : { body: bodies.of(request) }),
})

export const responseJson = (response: CustomResponse, bodies?: CallBodies): object => ({
  action: response.action,
  isFault: response.isFault,
  ...(bodies === undefined ? {} : { body: bodies.of(response) }),
})

export const dispatcherJson = ({ id, machineName, capacity, free }: CustomDispatcher): object => ({ id, machineName, capacity, free })

export const stateJson = (state: CustomState): Record<string, unknown> => Object.fromEntries(state.keys().map(key => [key, state.get(key)]))
