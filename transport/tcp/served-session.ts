import type { Socket } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { isSoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { END, unsizedEnvelope } from '../../wire/framing/encoder.ts'
import { MODE, type Mode } from '../../wire/framing/records.ts'
import type { Reading } from '../../wire/soap/envelope.ts'
import { toFault } from '../../wire/soap/fault.ts'
import { ChannelClosed, type DuplexChannel, type DuplexEndpoint, type DuplexSession, type OutgoingMessage } from '../channel.ts'
import { MessagesInHand } from '../messages-in-hand.ts'
import type { MessageCodec } from './codec.ts'
import type { MessageRoom } from './message-room.ts'
import { CoalescingWriter } from './writer.ts'
import type { TcpLimits } from './limits.ts'
import type { Via } from './via.ts'

interface Needs {
  socket: Socket
  endpoint: DuplexEndpoint
  via: Via
  codec: MessageCodec
  mode: Mode
  room: MessageRoom
  limits: TcpLimits
  clock: Clock
  /** Reads no further frame, until `release`. */
  hold: () => void
  release: () => void
  /** We have said End, and wait for the client's. */
  ending: () => void
  log: Logger
}

/** One session on a net.tcp connection, from the acknowledged preamble to End: messages in hand, their limits, and the channel that endpoints see. */
export class ServedSession implements DuplexChannel {
  readonly path: string
  readonly baseUrl: string
  readonly #needs: Needs
  readonly #over = new AbortController()
  readonly #writer: CoalescingWriter
  readonly #session: DuplexSession
  readonly #inHand: MessagesInHand
  #saidEnd = false
  #heardEnd = false
  #endedFirst = false

  constructor (needs: Needs) {
    this.#needs = needs
    this.path = needs.via.path
    this.baseUrl = needs.via.baseUrl
    this.#writer = new CoalescingWriter(needs.socket)
    this.#inHand = new MessagesInHand(needs)
    this.#session = needs.endpoint.open(this)
  }

  get signal (): AbortSignal { return this.#over.signal }
  /** We said End before the client did: there will be no other session on this connection. */
  get isEndedByUs (): boolean { return this.#endedFirst }

  /** One payload. What cannot be read ends the session: the tables of both sides may not be the same any more. */
  take (payload: Buffer): void {
    const { codec, mode, log } = this.#needs
    // Behind our End nothing can be answered, so nothing is taken: a request that was stored then would be stored without a word.
    if (this.#saidEnd) return
    let reading: Reading
    try {
      reading = codec.read(payload)
    } catch (error) {
      if (!isSoaError(error)) throw error
      log.info({ path: this.path, err: error }, 'a message could not be read')
      this.#send({ envelope: toFault(error, { soap: 12, addressed: true }) }).catch(() => undefined)
      this.end()
      return
    }
    const bytes = payload.length
    this.#inHand.take(bytes)
    this.#session.message(reading).then(undefined, error => {
      if (!(error instanceof ChannelClosed) && !this.#over.signal.aborted) log.error({ path: this.path, action: reading.envelope.action, err: error as Error }, 'a message failed in a way it should not')
    }).finally(() => {
      if (mode === MODE.singletonUnsized && !this.#saidEnd) this.end()
      this.#inHand.give(bytes)
    })
  }

  send (message: OutgoingMessage): Promise<void> {
    return this.#saidEnd || this.#over.signal.aborted ? Promise.reject(this.#reason()) : this.#send(message)
  }

  #reason (): ChannelClosed {
    const { reason } = this.#over.signal
    return reason instanceof ChannelClosed ? reason : new ChannelClosed('our side has been ended')
  }

  #send (message: OutgoingMessage): Promise<void> {
    const { codec, mode } = this.#needs
    let pieces: Buffer[]
    try {
      const isFramed = mode === MODE.duplex
      const bytes = codec.write(message, isFramed)
      pieces = [isFramed ? bytes : unsizedEnvelope(bytes)]
    } catch (error) {
      return Promise.reject(error as Error)
    }
    return this.#writer.write(pieces).catch(error => { throw new ChannelClosed('the connection broke', { cause: error }) })
  }

  end (): void {
    if (this.#saidEnd || this.#over.signal.aborted) return
    this.#saidEnd = true
    this.#endedFirst = !this.#heardEnd
    this.#writer.write([END]).catch(() => undefined) // the connection is gone, which its owner hears too
    this.#needs.ending()
  }

  /** The client has said End: resolves when what was in hand is done and ours is out too. */
  async ended (): Promise<void> {
    const { clock, limits } = this.#needs
    this.#heardEnd = true
    await this.#inHand.drained(clock, limits.closeTimeoutMs, this.#over.signal)
    if (this.#over.signal.aborted) return
    const isFirst = !this.#saidEnd
    this.#finish(new ChannelClosed('the client has ended the channel'))
    if (isFirst) await this.#writer.write([END]).catch(() => undefined) // as above
  }

  /** The connection is gone, or of no more use. */
  lost (why: string): void { this.#finish(new ChannelClosed(why)) }

  #finish (reason: ChannelClosed): void {
    if (this.#over.signal.aborted) return
    this.#over.abort(reason)
    this.#inHand.over()
    this.#session.closed?.()
  }
}
