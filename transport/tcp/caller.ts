import { systemClock, type Clock } from '../../core/clock.ts'
import { newMessageId } from '../../core/ids.ts'
import type { Envelope, Reading } from '../../wire/soap/envelope.ts'
import { ANONYMOUS, ChannelClosed, type CallResult, type SoapCaller } from '../channel.ts'
import { openTcp, type TcpChannel, type TcpClientOptions } from './client-session.ts'

export interface TcpCallerOptions extends Pick<TcpClientOptions, 'limits' | 'connectTimeoutMs' | 'socketPath' | 'tls' | 'contentType'> {
  /** Connections at most; a call waits for one, and its time runs meanwhile. */
  readonly connections: number
  /** Calls under way on one connection: 1 as HPC Pack's broker does it; Infinity for hosts that answer in any order. */
  readonly callsPerConnection: number
  readonly clock?: Clock
}

/** A connection and the calls that wait on it, by MessageID. */
interface Line {
  readonly channel: Promise<TcpChannel>
  /** The same once it is open: a program that waits for nothing shall end although its lines are open. */
  open?: TcpChannel
  readonly waiting: Map<string, (result: CallResult) => void>
}

/** Calls one SOAP endpoint over net.tcp; replies find their calls by RelatesTo. Failures of a call are values; it throws nothing. */
export function tcpCaller (url: string, options: TcpCallerOptions): SoapCaller {
  const { clock = systemClock } = options
  const lines = new Set<Line>()
  const queue: Array<() => void> = []
  const over = new AbortController()

  function openLine (): Line {
    const waiting: Line['waiting'] = new Map()
    const line: Line = {
      waiting,
      channel: openTcp(url, {
        ...options,
        message (reading: Reading) {
          // What relates to nothing came too late for its call, or is not a reply.
          waiting.get(reading.envelope.relatesTo ?? '')?.({ outcome: 'answered', reading })
        },
        closed (reason) {
          lines.delete(line)
          for (const answer of [...waiting.values()]) answer({ outcome: 'broken', error: reason })
          queue.shift()?.()
        },
      }, over.signal),
    }
    lines.add(line)
    line.channel.then(open => { line.open = open; open.keepsProcess(waiting.size > 0) }, () => { lines.delete(line); queue.shift()?.() })
    return line
  }

  /** Takes a place on a line that does not carry this id already; waits until there is one. */
  async function placeOn (messageId: string, answer: (result: CallResult) => void, stop: AbortSignal): Promise<Line> {
    for (;;) {
      stop.throwIfAborted()
      let line = [...lines].find(line => line.waiting.size < options.callsPerConnection && !line.waiting.has(messageId))
      if (line === undefined && lines.size < options.connections) line = openLine()
      // Taken in this very turn, so that no other call comes in between.
      if (line !== undefined) { line.waiting.set(messageId, answer); line.open?.keepsProcess(true); return line }
      await new Promise<void>(resolve => {
        const go = (): void => { stop.removeEventListener('abort', go); resolve() }
        queue.push(go)
        stop.addEventListener('abort', go, { once: true })
      })
    }
  }

  async function call (sent: Envelope, { timeoutMs, signal, isOneWay = false }: Parameters<SoapCaller['call']>[1]): Promise<CallResult> {
    const stop = new AbortController()
    const abort = (): void => stop.abort(new Stopped('aborted'))
    if (signal.aborted) return { outcome: 'aborted' }
    signal.addEventListener('abort', abort, { once: true })
    const disarm = clock.after(timeoutMs, () => stop.abort(new Stopped('timedOut')))
    const messageId = sent.messageId ?? newMessageId()
    let answer: (result: CallResult) => void = () => {}
    const answered = new Promise<CallResult>((resolve, reject) => {
      answer = resolve
      stop.signal.addEventListener('abort', () => reject(stop.signal.reason as Error), { once: true })
    })
    answered.catch(() => undefined) // it may be stopped before anybody waits for it
    let line: Line | undefined
    try {
      line = await placeOn(messageId, answer, stop.signal)
      const opened = await Promise.race([line.channel.catch((error: unknown) => error as Error), answered])
      if (opened instanceof Error) return { outcome: 'unreachable', error: opened }
      if ('outcome' in opened) return opened
      // One-way messages have neither MessageID nor ReplyTo in WCF.
      await opened.send(isOneWay ? { envelope: { ...sent, messageId: undefined } } : { envelope: { ...sent, messageId }, replyTo: ANONYMOUS })
      return isOneWay ? { outcome: 'accepted' } : await answered
    } catch (error) {
      if (error instanceof Stopped) return { outcome: error.outcome }
      return error instanceof ChannelClosed ? { outcome: 'broken', error } : { outcome: 'badReply', error: error as Error }
    } finally {
      disarm()
      signal.removeEventListener('abort', abort)
      if (line?.waiting.delete(messageId) === true) {
        if (line.waiting.size === 0) line.open?.keepsProcess(false)
        queue.shift()?.()
      }
    }
  }

  return {
    call,
    async close () {
      over.abort(new ChannelClosed('the caller was closed'))
      await Promise.all([...lines].map(({ channel }) => channel.then(open => open.close(), () => undefined)))
    },
  }
}

/** A call that its caller, or its clock, has given up. */
class Stopped extends Error {
  readonly outcome: 'aborted' | 'timedOut'
  constructor (outcome: 'aborted' | 'timedOut') {
    super(outcome)
    this.outcome = outcome
  }
}
