import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest, RouteGenericInterface } from 'fastify'
import { SoaError } from '../../../core/errors.ts'
import type { SessionRaising } from '../session-raising.ts'
import { isUnreachable, type Passed, type Worker } from '../worker-link.ts'
import { sessionIdOf } from './sessions.ts'

export type OfSession = { Params: { id: string } }
type Incoming = FastifyRequest<RouteGenericInterface & OfSession>

/** Passes a call on to the control socket of the worker that serves its session, below `/sessions/{id}/`, and the answer back as it comes. */
export type Pass = (request: Incoming, reply: FastifyReply, path: string, body?: Readable) => Promise<FastifyReply>

export interface PassNeeds { raising: Pick<SessionRaising, 'locate' | 'mend'> }

/** A problem of a worker fits in here by far; anything longer is cut. */
const MAX_PROBLEM_BYTES = 65_536

export function passing ({ raising }: PassNeeds): Pass {
  return async (request, reply, path, body) => {
    const sessionId = sessionIdOf(request)
    const gone = new AbortController()
    reply.raw.once('close', () => gone.abort())
    let last: Worker | undefined
    for (let tried = 0; ; tried++) {
      const worker = last === undefined ? await raising.locate(sessionId) : await raising.mend(sessionId, last)
      // What a stream has given can be given once only; anything else may be asked of the session's next worker.
      const mayTryAgain = tried < 2 && body === undefined
      let answer: Passed
      try {
        answer = await worker.link.pass(request.method as 'GET', `/sessions/${sessionId}/${path}`, { body, signal: gone.signal, headers: body === undefined ? {} : { 'content-type': 'application/x-ndjson' } })
      } catch (error) {
        if (!isUnreachable(error)) throw error
        if (!mayTryAgain) throw new SoaError('Broker_BrokerUnavailable', { sessionId }, { cause: error })
        last = worker
        continue
      }
      if (answer.status < 400) return send(reply, answer)
      const text = await textOf(answer.body)
      if (answer.status === 404 && mayTryAgain && nameIn(text) === 'InvalidSessionId') { last = worker; continue }
      return reply.code(answer.status).type(answer.headers['content-type'] ?? 'application/problem+json').send(text)
    }
  }
}

function send (reply: FastifyReply, { status, headers, body }: Passed): FastifyReply {
  void reply.code(status).header('cache-control', 'no-store').serializer(payload => payload as string)
  if (headers['content-type'] !== undefined) void reply.header('content-type', headers['content-type'])
  return reply.send(status === 204 ? (body.resume(), undefined) : body)
}

async function textOf (body: Readable): Promise<string> {
  let text = ''
  for await (const part of body.setEncoding('utf8')) if ((text += part as string).length > MAX_PROBLEM_BYTES) break
  return text.slice(0, MAX_PROBLEM_BYTES)
}

function nameIn (text: string): unknown {
  try { return (JSON.parse(text) as { name?: unknown }).name } catch { return undefined }
}
