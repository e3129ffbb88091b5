import type { Socket } from 'node:net'
import { WebSocket, type RawData } from 'ws'
import type { Clock } from '../../core/clock.ts'
import { isSoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { Reading } from '../../wire/soap/envelope.ts'
import { toFault } from '../../wire/soap/fault.ts'
import { ChannelClosed, type DuplexChannel, type DuplexEndpoint, type DuplexSession, type OutgoingMessage } from '../channel.ts'
import { MessagesInHand } from '../messages-in-hand.ts'
import type { MessageCodec } from '../tcp/codec.ts'
import type { TcpLimits } from '../tcp/limits.ts'
import type { MessageRoom } from '../tcp/message-room.ts'

/** Status codes of Close frames. [RFC 6455] 7.4.1 */
const CLOSE = { normal: 1000, goingAway: 1001, badPayload: 1007, tooBig: 1009, abnormal: 1006 } as const
/** How long the client may take to answer a Close. */
export const CLOSE_TIMEOUT_MS = 10_000
/** How often a client is asked whether it is there. Under the minute after which many proxies drop a silent connection. */
const PING_MS = 30_000
/** A reason in a Close frame. [RFC 6455] 5.5 */
const MAX_REASON_BYTES = 123

interface Needs {
  socket: SoapWebSocket
  /** What it runs on. */
  connection: Socket
  endpoint: DuplexEndpoint
  path: string
  baseUrl: string
  codec: MessageCodec
  room: MessageRoom
  limits: Pick<TcpLimits, 'maxInHand' | 'maxInHandBytes'>
  clock: Clock
  log: Logger
}

/** The library's socket, which says why where it only gives a number: it closes by itself when a message is too large, and the limit is named nowhere else. */
export class SoapWebSocket extends WebSocket {
  maxMessageSize = 0

  override close (code?: number, reason?: string | Buffer): void {
    super.close(code, reason ?? (code === CLOSE.tooBig ? `the message is larger than maxMessageSize, ${this.maxMessageSize} bytes` : undefined))
  }
}

/** One WebSocket that speaks SOAP, from the accepted handshake to the Close frames: one message, one envelope ([MS-SWSB]). */
export class WebSocketChannel implements DuplexChannel {
  readonly path: string
  readonly baseUrl: string
  readonly #needs: Needs
  readonly #over = new AbortController()
  readonly #session: DuplexSession
  readonly #inHand: MessagesInHand
  #saidEnd = false
  #disarm: () => void = () => {}

  constructor (needs: Needs) {
    const { socket, path, baseUrl, endpoint, log } = needs
    this.#needs = needs
    this.path = path
    this.baseUrl = baseUrl
    this.#inHand = new MessagesInHand({ ...needs, hold: () => { if (!this.#saidEnd) socket.pause() }, release: () => socket.resume() })
    this.#session = endpoint.open(this)
    socket.on('message', data => this.#take(data))
    socket.on('error', error => log.info({ path, err: error }, 'a WebSocket broke'))
    socket.on('close', (code, reason) => { void this.#closed(code, String(reason)) })
    this.#ping(-1, false)
  }

  get signal (): AbortSignal { return this.#over.signal }

  /** What cannot be read ends the channel: the tables of both sides may not be the same any more. */
  #take (data: RawData): void {
    const { codec, log } = this.#needs
    const payload = data as Buffer // one piece: the socket's binaryType is nodebuffer
    if (this.#over.signal.aborted) return
    let reading: Reading
    try {
      reading = codec.read(payload)
    } catch (error) {
      if (!isSoaError(error)) throw error
      log.info({ path: this.path, err: error }, 'a message could not be read')
      this.#send({ envelope: toFault(error, { soap: 12, addressed: true }) }).catch(() => { /* the connection is gone, which its close says */ })
      this.#end(CLOSE.badPayload, error.message)
      return
    }
    this.#inHand.take(payload.length)
    this.#session.message(reading).then(undefined, error => {
      if (!(error instanceof ChannelClosed) && !this.#over.signal.aborted) log.error({ path: this.path, action: reading.envelope.action, err: error as Error }, 'a message failed in a way it should not')
    }).finally(() => this.#inHand.give(payload.length))
  }

  send (message: OutgoingMessage): Promise<void> {
    return this.#saidEnd || this.#over.signal.aborted ? Promise.reject(this.#reason()) : this.#send(message)
  }

  #reason (): ChannelClosed {
    const { reason } = this.#over.signal
    return reason instanceof ChannelClosed ? reason : new ChannelClosed('our side has been ended')
  }

  #send (message: OutgoingMessage): Promise<void> {
    const { socket, codec } = this.#needs
    // The client's Close has come: it is answered already, and nothing may follow. [RFC 6455] 5.5.1
    if (socket.readyState !== WebSocket.OPEN) return Promise.reject(new ChannelClosed('the channel is being closed'))
    return new Promise((resolve, reject) => {
      socket.send(codec.write(message, false), { binary: true }, error => {
        if (error) reject(new ChannelClosed('the connection broke', { cause: error }))
        else resolve()
      })
    })
  }

  end (): void { this.#end(CLOSE.normal, '') }

  /** The server stops. */
  leave (): void { this.#end(CLOSE.goingAway, 'the server stops') }

  /** Now, and what is in hand is given up. */
  cut (): void {
    this.#needs.socket.terminate()
    this.#finish(new ChannelClosed('the server stops'))
  }

  #end (code: number, reason: string): void {
    if (this.#saidEnd || this.#over.signal.aborted) return
    this.#saidEnd = true
    const { socket } = this.#needs
    let text = reason
    while (Buffer.byteLength(text) > MAX_REASON_BYTES) text = text.slice(0, -1)
    // The client's own Close can only be heard by who reads.
    if (socket.isPaused) socket.resume()
    socket.close(code, text)
  }

  /** Both have said Close, or the connection is gone. What came before the client's Close is still done: much of it wants no answer. */
  async #closed (code: number, reason: string): Promise<void> {
    const { clock } = this.#needs
    this.#disarm()
    if (code !== CLOSE.abnormal) await this.#inHand.drained(clock, CLOSE_TIMEOUT_MS, this.#over.signal)
    this.#finish(new ChannelClosed(code === CLOSE.abnormal ? 'the connection is gone' : `the channel was closed: ${code}${reason === '' ? '' : ` ${reason}`}`))
  }

  #finish (reason: ChannelClosed): void {
    if (this.#over.signal.aborted) return
    this.#over.abort(reason)
    this.#inHand.over()
    this.#session.closed?.()
  }

  /**
   * A client that says nothing for a whole round, not even that it is there, is gone. Not so one that was sent a message since: .NET answers pings only while somebody
   * reads its channel, and HPC's client does not read the one on which it sends, so for that one TCP's own keep-alive decides.
   *
   * @param heard what had come of the client's bytes when it was last asked; -1: not asked yet
   */
  #ping (heard: number, mayBeUnread: boolean): void {
    const { socket, connection, clock, log } = this.#needs
    const written = connection.bytesWritten
    this.#disarm = clock.after(PING_MS, () => {
      if (socket.readyState !== WebSocket.OPEN) return
      const isSilent = connection.bytesRead === heard
      if (isSilent && !mayBeUnread && !this.#inHand.isHeld) {
        log.info({ path: this.path, silentMs: PING_MS }, 'a WebSocket client answers no more')
        socket.terminate()
        return
      }
      const wasSent = connection.bytesWritten - written > PING_BYTES
      socket.ping()
      this.#ping(connection.bytesRead, wasSent || (isSilent && mayBeUnread))
    }, { unref: true })
  }
}

/** Of a ping as it is sent here, without payload. */
const PING_BYTES = 2
