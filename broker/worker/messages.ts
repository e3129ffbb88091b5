import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { SoaError } from '../../core/errors.ts'
import { newMessageId } from '../../core/ids.ts'
import { withTextBody } from '../../wire/soap/body-form.ts'
import { SOAP12, type Envelope } from '../../wire/soap/envelope.ts'
import { userDataHeader, userDataText } from '../../wire/soap/hpc-headers.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { writeEnvelope } from '../../wire/soap/write.ts'
import { checkClientId } from './front-end.ts'
import type { BrokerSession } from './session.ts'

/** Requests and responses of one client as NDJSON: the REST side of what SOAP clients do (surface.md). */

/** Appends in flight at a time; the next line is read when there is room, so a fast sender is held back by its socket. */
const WINDOW = 256

interface RequestLine { action?: unknown, body?: unknown, userData?: unknown, messageId?: unknown }

/** `{action, body, userData?, messageId?}` per line; `body` is the markup inside the SOAP Body. Answers `{accepted}`; the first bad line is named and ends the call. */
export async function acceptRequests (session: BrokerSession, clientId: string, req: IncomingMessage, signal: AbortSignal): Promise<{ accepted: number }> {
  session.refuseUnlessTaking()
  const client = session.client(checkClientId(clientId))
  const flying = new Set<Promise<void>>()
  let failed: unknown
  let accepted = 0
  let line = 0
  for await (const text of createInterface({ input: req, crlfDelay: Infinity })) {
    line++
    if (failed !== undefined) break
    if (text.trim() === '') continue
    const envelope = envelopeOf(session, text, line)
    const flight = client.accept(envelope, -1, signal).then(() => { accepted++ }, error => { failed ??= error }).finally(() => flying.delete(flight))
    flying.add(flight)
    if (flying.size >= WINDOW) await Promise.race(flying)
  }
  await Promise.all(flying)
  if (failed !== undefined) throw failed
  session.workCame()
  return { accepted }
}

function envelopeOf (session: BrokerSession, text: string, line: number): Envelope {
  const { settings } = session.service
  const bad = (why: string): SoaError => new SoaError('InvalidArgument', { argument: `line ${line}`, why })
  if (Buffer.byteLength(text) > settings.maxMessageSize) throw new SoaError('overLimit', { setting: 'maxMessageSize', limit: settings.maxMessageSize, value: Buffer.byteLength(text) })
  let row: RequestLine
  try {
    row = JSON.parse(text) as RequestLine
  } catch (error) {
    throw bad(`is no JSON: ${(error as Error).message}`)
  }
  const { action, body, userData, messageId } = row
  if (typeof action !== 'string' || action === '') throw bad('action (text) is missing')
  if (typeof body !== 'string') throw bad('body (markup as text) is missing')
  // One reader for all ways in: it checks the markup and finds the prefixes.
  const { envelope } = readEnvelope(Buffer.from(`<s:Envelope xmlns:s="${SOAP12}"><s:Body>${body}</s:Body></s:Envelope>`), { limits: settings })
  return {
    ...envelope,
    action,
    messageId: typeof messageId === 'string' ? messageId : newMessageId(),
    userData: userDataHeader(userData === undefined ? '' : typeof userData === 'string' ? userData : JSON.stringify(userData)),
  }
}

/** Responses as they come, one line each: `{messageId, userData, action, requestAction, isFault, body, envelope}`. Ends after the last one, or after `limit`. */
export async function streamResponses (session: BrokerSession, clientId: string, query: URLSearchParams, res: ServerResponse, signal: AbortSignal): Promise<void> {
  const from = query.get('from') ?? 'current'
  const limit = query.has('limit') ? Number(query.get('limit')) : Infinity
  if (from !== 'begin' && from !== 'current') throw new SoaError('InvalidArgument', { argument: 'from', why: `begin or current is expected, not "${from}"` })
  if (!(limit >= 1)) throw new SoaError('InvalidArgument', { argument: 'limit', why: `a number from 1 on is expected, not "${query.get('limit') ?? ''}"` })
  const client = session.client(checkClientId(clientId))
  let position: 'Begin' | 'Current' = from === 'begin' ? 'Begin' : 'Current'
  let sent = 0
  while (sent < limit) {
    // One at a time while they trickle, many when they are there: `count` 1 waits for the first, then the rest of the page follows without waiting.
    const waiting = Math.max(1, Math.min(256, limit - sent, client.queue.responses - client.reader.position(position)))
    const page = await client.pull(position, waiting, '', { maxBytes: 4 * 1024 * 1024, signal, end: () => session.readEnd() })
    position = 'Current'
    if (!res.headersSent) res.writeHead(200, { 'content-type': 'application/x-ndjson' })
    for (const { envelope, requestAction, isFault } of page.responses) {
      const line = {
        messageId: envelope.relatesTo,
        userData: envelope.userData === undefined ? '' : userDataText(envelope.userData),
        action: envelope.action,
        requestAction,
        isFault,
        body: Buffer.from(withTextBody(envelope).body).toString('utf8'),
        envelope: writeEnvelope(envelope, { soap: 12, addressing: 'wsa' }).toString('utf8'),
      }
      sent++
      if (!res.write(JSON.stringify(line) + '\n')) await once(res, 'drain', { signal })
    }
    if (page.endOfMessages) break
  }
  if (!res.headersSent) res.writeHead(200, { 'content-type': 'application/x-ndjson' })
  res.end()
}

/** SSE: `counters` whenever they changed (looked at each second), `tasks` likewise, `state` at the end. */
export async function streamEvents (session: BrokerSession, res: ServerResponse, signal: AbortSignal): Promise<void> {
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
  const told = new Map<string, string>()
  const say = async (event: string, data: unknown): Promise<void> => {
    const text = JSON.stringify(data)
    if (told.get(event) === text) return
    told.set(event, text)
    if (!res.write(`event: ${event}\ndata: ${text}\n\n`)) await once(res, 'drain', { signal })
  }
  while (!signal.aborted) {
    const view = await session.view()
    await say('state', { state: view.state })
    await say('counters', view.counters)
    await say('clients', view.clients)
    await say('tasks', view.tasks)
    if (view.state !== 'Running') break
    await session.pause(1000, signal)
  }
  res.end()
}
