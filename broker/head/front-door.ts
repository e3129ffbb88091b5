import type { IncomingMessage, ServerResponse } from 'node:http'
import { isSoaError, SoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { contentTypeOf, parseContentType, soapOfMediaType } from '../../wire/soap/encoding.ts'
import { toFault } from '../../wire/soap/fault.ts'
import { writeEnvelope } from '../../wire/soap/write.ts'
import { toProblem } from './problem.ts'
import type { SessionRaising } from './session-raising.ts'
import { isUnknownThere } from './worker-link.ts'

export interface FrontDoorNeeds {
  raising: Pick<SessionRaising, 'locate' | 'mend'>
  /** Sends the request on to the Unix socket and its answer back; rejects when the socket could not be reached and nothing of the request is used up. */
  forward: (req: IncomingMessage, res: ServerResponse, socketPath: string) => Promise<void>
  log: Logger
}

/** HPC's clients send no message over 4 MiB without being told to (maxMessageSize). */
const MOST_DRAINED_BYTES = 8 * 1024 * 1024

/** `/1730412/Http…`: the session's id; undefined for any other path. */
export function sessionIn (path: string): string | undefined {
  const id = /^\/([1-9]\d{0,9})\/Http(?=[/?]|$)/i.exec(path)?.[1]
  return id !== undefined && Number(id) < 2 ** 31 ? id : undefined
}

/**
 * What of a session's traffic passes the head. New connections are relayed as raw bytes to the worker's socket and never come here; here come requests
 * of a kept-alive connection that began with something else, those that reached the wrong worker, and those of sessions that nobody serves.
 */
export class FrontDoor {
  readonly #needs: FrontDoorNeeds

  constructor (needs: FrontDoorNeeds) { this.#needs = needs }

  /** Unix socket of the worker that serves the path's session. Undefined: the path is not a session's, or nobody serves it; the request is answered by `take` or the REST side then. */
  async socketOf (path: string): Promise<string | undefined> {
    const sessionId = sessionIn(path)
    if (sessionId === undefined) return undefined
    try {
      return (await this.#needs.raising.locate(sessionId)).socket
    } catch (error) {
      this.#needs.log.debug({ sessionId, err: error }, 'session not served')
      return undefined
    }
  }

  /** Answers a request for a session; false: it is for none. `isReturned`: a worker sent it back, because it does not have the session that its record says it has. */
  take (req: IncomingMessage, res: ServerResponse, isReturned = false): boolean {
    const sessionId = sessionIn(req.url ?? '')
    if (sessionId === undefined) return false
    this.#take(sessionId, req, res, isReturned).catch(error => {
      if (!isSoaError(error)) this.#needs.log.error({ sessionId, method: req.method, url: req.url, err: error }, 'request for a session failed')
      return refuse(req, res, error)
    }).catch(err => this.#needs.log.debug({ sessionId, err }, 'caller left before its refusal'))
    return true
  }

  async #take (sessionId: string, req: IncomingMessage, res: ServerResponse, isReturned: boolean): Promise<void> {
    const { raising, forward } = this.#needs
    let worker = await raising.locate(sessionId)
    // A record that is behind would send the request round and round between worker and head.
    if (isReturned && await worker.link.view(sessionId).then(() => false, isUnknownThere)) worker = await raising.mend(sessionId, worker)
    try {
      await forward(req, res, worker.socket)
    } catch (error) {
      if (res.headersSent || req.destroyed) throw error
      worker = await raising.mend(sessionId, worker)
      await forward(req, res, worker.socket).catch(cause => { throw new SoaError('Broker_BrokerUnavailable', { sessionId }, { cause }) })
    }
  }
}

/** As a SOAP fault, status 500, to who sent SOAP (WCF drops the body of any other error status); as a problem to anybody else. */
async function refuse (req: IncomingMessage, res: ServerResponse, error: unknown): Promise<void> {
  if (res.headersSent) { res.destroy(); return }
  // A client that is still sending would have its connection reset before it reads the answer; but not everything is worth reading for a refusal.
  if (!await isDrained(req)) res.setHeader('connection', 'close')
  const soap = req.method === 'POST' ? soapOfMediaType(parseContentType(req.headers['content-type'] ?? '').type) : undefined
  if (soap === undefined) {
    const problem = toProblem(error)
    if (problem.status === 503) res.setHeader('retry-after', '1')
    res.writeHead(problem.status, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem))
  } else {
    const fault = toFault(error, { soap })
    res.writeHead(500, { 'content-type': contentTypeOf(soap, fault.action) }).end(writeEnvelope(fault, { addressing: soap === 12 ? 'wsa' : 'omit' }))
  }
}

/** Reads the rest of the request away; false: it is more than anybody sends in one message, or it broke off. */
async function isDrained (req: IncomingMessage): Promise<boolean> {
  let bytes = 0
  try {
    for await (const part of req as AsyncIterable<Buffer>) if ((bytes += part.length) > MOST_DRAINED_BYTES) return false
  } catch {
    return false // the caller is gone; its answer goes nowhere either
  }
  return true
}
