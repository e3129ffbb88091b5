import { FAULTS, isSoaError, SoaError, type FaultName, type FaultRow } from '../../core/errors.ts'
import type { Decision, MadeMessage } from '../../store/message-store.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { readBodyXml } from '../../wire/soap/body-xml.ts'

/** What hooks give back, checked. Whatever does not fit is `Rubbish`: the session ends by it, and the text says what was given. */
export class Rubbish extends Error {}

export interface BodyLimits { maxMessageSize: number, maxHeaderBytes: number, maxDepth: number }
/** What becomes of a request: stored with a decision, perhaps with another body, or refused. */
export interface Decided { readonly envelope: Envelope, readonly decision: Decision | undefined, readonly refusal: SoaError | undefined }

const MOST_PARTS = 10_000
const MOST_ACTION = 2048
const LANES = { least: -1000, most: 1000 }
const VERDICTS = ['lane', 'replace', 'answer', 'refuse', 'scatter', 'why']

/** A Verdict of `onRequest`, applied. `replyAction`: of the operation, as far as it is known. */
export function decided (verdict: unknown, envelope: Envelope, replyAction: string, limits: BodyLimits): Decided {
  if (verdict === 'pass' || verdict === undefined) return { envelope, decision: undefined, refusal: undefined }
  const said = object(verdict, 'a verdict')
  const unknown = Object.keys(said).find(key => !VERDICTS.includes(key))
  if (unknown !== undefined || Object.keys(said).length === 0) throw new Rubbish(`a verdict is 'pass' or has ${VERDICTS.slice(0, 5).join(', ')}; it was ${shown(verdict)}`)
  const kinds = ['replace', 'answer', 'refuse', 'scatter'].filter(kind => said[kind] !== undefined)
  if (kinds.length > 1) throw new Rubbish(`a verdict has one of replace, answer, refuse and scatter; it had ${kinds.join(' and ')}`)
  if (said.refuse !== undefined) return { envelope, decision: undefined, refusal: refusalOf(said.refuse, said.why) }
  const lane = said.lane === undefined ? undefined : wholeNumber('lane', said.lane, LANES.least, LANES.most)
  if (said.answer !== undefined) return { envelope, decision: { answer: made(said.answer, replyAction, limits, 'answer') }, refusal: undefined }
  if (said.scatter !== undefined) return { envelope, decision: { ...(lane === undefined ? {} : { lane }), scatter: parts(said.scatter, envelope.action, limits) }, refusal: undefined }
  const replaced = said.replace === undefined ? envelope : replace(envelope, object(said.replace, 'replace'), limits)
  return { envelope: replaced, decision: lane === undefined || lane === 0 ? undefined : { lane }, refusal: undefined }
}

/** What `onResponse` and `onGather` give: markup, checked; `fallback` is the action where none is said. */
export function made (value: unknown, fallback: string, limits: BodyLimits, what: string): MadeMessage {
  const { body, action = fallback, isFault = false } = object(value, what)
  if (typeof body !== 'string') throw new Rubbish(`${what}.body is the markup inside the SOAP Body as text, not ${shown(body)}`)
  checkAction(action, what)
  if (typeof isFault !== 'boolean') throw new Rubbish(`${what}.isFault is true or false, not ${shown(isFault)}`)
  read(body, limits, what)
  return { action: action as string, body, ...(isFault ? { isFault } : {}) }
}

/** A made message as an envelope of the same exchange as `like`. It was checked when it was made. */
export function madeEnvelope ({ action, body }: MadeMessage, like: Envelope, limits: BodyLimits): Envelope {
  return { ...like, ...readBodyXml(body, limits), action, otherHeaders: [] }
}

function parts (value: unknown, action: string, limits: BodyLimits): MadeMessage[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MOST_PARTS) throw new Rubbish(`scatter is a list of 1 to ${MOST_PARTS} parts, not ${Array.isArray(value) ? `one of ${value.length}` : shown(value)}`)
  // Array.from: a list with holes has parts that are undefined, and map would step over them.
  const found = Array.from(value as unknown[], (part, i) => made(part, action, limits, `scatter[${i}]`))
  const bytes = found.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0)
  const most = limits.maxMessageSize * 4
  if (bytes > most) throw new Rubbish(`scatter has ${bytes} bytes, the limit is ${most} (4 × maxMessageSize)`)
  return found
}

function replace (envelope: Envelope, said: Record<string, unknown>, limits: BodyLimits): Envelope {
  const { body, action } = said
  if (action !== undefined) checkAction(action, 'replace')
  if (body !== undefined && typeof body !== 'string') throw new Rubbish(`replace.body is the markup inside the SOAP Body as text, not ${shown(body)}`)
  return { ...envelope, ...(body === undefined ? {} : read(body, limits, 'replace')), ...(action === undefined ? {} : { action: action as string }) }
}

/** It becomes an addressing header, and over HTTP part of a header line. */
function checkAction (action: unknown, what: string): void {
  const isText = typeof action === 'string' && action.length <= MOST_ACTION && !/\p{Cc}|\p{Cs}/u.test(action)
  if (!isText) throw new Rubbish(`${what}.action is text of at most ${MOST_ACTION} characters without control characters, not ${shown(action)}`)
}

function read (body: string, limits: BodyLimits, what: string): ReturnType<typeof readBodyXml> {
  try {
    return readBodyXml(body, limits)
  } catch (error) {
    if (!isSoaError(error)) throw error
    throw new Rubbish(`${what}.body: ${error.message}`, { cause: error })
  }
}

/** Any fault of HPC Pack's table; its sentence is filled with `why`. */
function refusalOf (name: unknown, why: unknown = 'the custom broker refuses it'): SoaError {
  const row: FaultRow | undefined = typeof name === 'string' && Object.hasOwn(FAULTS, name) ? FAULTS[name as FaultName] : undefined
  if (row?.code === undefined) throw new Rubbish(`refuse is the name of a fault with a number (docs/faults.md), not ${shown(name)}`)
  if (typeof why !== 'string') throw new Rubbish(`why is text, not ${shown(why)}`)
  const context = Object.fromEntries(row.context.map(key => [key, key === 'argument' ? 'request' : why]))
  return new SoaError(name as FaultName, context as ConstructorParameters<typeof SoaError>[1])
}

export function object (value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Rubbish(`${what} is an object, not ${shown(value)}`)
  return value as Record<string, unknown>
}

function wholeNumber (what: string, value: unknown, least: number, most: number): number {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) throw new Rubbish(`${what} is a whole number from ${least} to ${most}, not ${shown(value)}`)
  return value as number
}

/** A value in a sentence, cut. */
export function shown (value: unknown): string {
  if (value instanceof Promise) return 'a promise'
  // It is a stranger's: its toJSON, toString and getters may do anything.
  try {
    const text = JSON.stringify(value) as string | undefined
    return (text ?? (typeof value === 'function' ? 'a function' : String(value as number | undefined))).slice(0, 200)
  } catch {
    return 'what cannot be shown'
  }
}
