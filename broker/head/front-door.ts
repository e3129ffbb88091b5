import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isSoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { SoapEndpoint } from '../../transport/channel.ts'
import { soapRequestListener } from '../../transport/http/listener.ts'
import { requestBytes } from '../../transport/http/upgrade.ts'
import { introduction } from '../../transport/introduction.ts'
import { pass } from '../../transport/pass.ts'
import { asSoaError, toProblem } from '../problem.ts'
import type { SessionRaising } from './session-raising.ts'
import { isUnknownThere, type Worker } from './worker-link.ts'

export interface FrontDoorNeeds {
  raising: Pick<SessionRaising, 'locate' | 'mend'>
  /** Sends the request on to the Unix socket and its answer back (transport/http/forward.ts). */
  forward: (req: IncomingMessage, res: ServerResponse, socketPath: string) => Promise<void>
  /** Of messages that are read only to be refused. */
  limits: SoapEndpoint['limits']
  log: Logger
}

/** `/1730412/Http…`, `/1730412/NetHttp…`: the session's id; undefined for any other path. */
export function sessionIn (path: string): string | undefined {
  return idIn(/^\/([1-9]\d{0,9})\/(?:Net)?Http(?=[/?]|$)/i, path)
}

/** `/1730412/NetTcp…`: the same for a via. */
export function sessionInVia (path: string): string | undefined {
  return idIn(/^\/([1-9]\d{0,9})\/NetTcp(?=\/|$)/i, path)
}

function idIn (pattern: RegExp, path: string): string | undefined {
  const id = pattern.exec(path)?.[1]
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
  async socketOf (path: string): Promise<string | undefined> { return (await this.#worker(sessionIn(path)))?.socket }

  /** The same for a via. Undefined: a net.tcp client is told that there is nothing. */
  async netTcpSocketOf (path: string): Promise<string | undefined> { return (await this.#worker(sessionInVia(path)))?.netTcp }

  async #worker (sessionId: string | undefined): Promise<Pick<Worker, 'socket' | 'netTcp'> | undefined> {
    if (sessionId === undefined) return undefined
    try {
      return await this.#needs.raising.locate(sessionId)
    } catch (error) {
      this.#needs.log.debug({ sessionId, err: error }, 'session not served')
      return undefined
    }
  }

  /** Answers a request for a session; false: it is for none. `isReturned`: a worker sent it back, because it does not have the session that its record says it has. */
  take (req: IncomingMessage, res: ServerResponse, isReturned = false): boolean {
    const sessionId = sessionIn(req.url ?? '')
    if (sessionId === undefined) return false
    this.#take(sessionId, req, res, isReturned).catch(thrown => {
      const { log, limits } = this.#needs
      const error = asSoaError(thrown, sessionId)
      if (!isSoaError(error)) log.error({ sessionId, method: req.method, url: req.url, err: error }, 'request for a session failed')
      if (res.headersSent) res.destroy()
      else soapRequestListener({ route: () => refusing(error, limits), log })(req, res, false)
    })
    return true
  }

  /** The same for a WebSocket, which is passed on with its connection; false: it is for no session that anybody serves. */
  async takeWebSocket (req: IncomingMessage, socket: Socket, head: Buffer): Promise<boolean> {
    const { log } = this.#needs
    const to = await this.socketOf((req.url ?? '').replace(/\?.*$/s, ''))
    // By a worker's word it comes back here: a session that its worker does not have would go round and round.
    if (to === undefined || socket.remoteFamily === undefined) return false
    socket.unshift(requestBytes(req, head, { isUpgrade: true }))
    pass(socket, to, { introduction: introduction(socket), unreachable: () => socket.destroy(), log })
    return true
  }

  async #take (sessionId: string, req: IncomingMessage, res: ServerResponse, isReturned: boolean): Promise<void> {
    const { raising, forward } = this.#needs
    let worker = await raising.locate(sessionId)
    // A record that is behind would send the request round and round between worker and head.
    if (isReturned && await worker.link.view(sessionId).then(() => false, isUnknownThere)) worker = await raising.mend(sessionId, worker)
    await forward(req, res, worker.socket)
  }
}

/** What stands at the path of a session that nobody serves: a SOAP fault for who sends SOAP, a problem for anybody else. */
function refusing (error: unknown, limits: SoapEndpoint['limits']): SoapEndpoint {
  return {
    limits,
    handle: () => Promise.reject(error),
    async get () {
      const problem = toProblem(error)
      return { status: problem.status, contentType: 'application/problem+json', body: JSON.stringify(problem) }
    }
  }
}
