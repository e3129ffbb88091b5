import { connect as connectSocket, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import { systemClock, type Clock } from '../../core/clock.ts'
import { SoaError } from '../../core/errors.ts'
import { FrameDecoder, type Frame } from '../../wire/framing/decoder.ts'
import { END, preamble, PREAMBLE_END, upgradeRequest } from '../../wire/framing/encoder.ts'
import { framingError, framingFaultOf } from '../../wire/framing/faults.ts'
import { MSBINSESSION1, SSL_TLS } from '../../wire/framing/records.ts'
import type { Reading } from '../../wire/soap/envelope.ts'
import { ChannelClosed, type DuplexChannel, type OutgoingMessage } from '../channel.ts'
import { codecFor, type MessageCodec } from './codec.ts'
import { FramePump } from './frame-pump.ts'
import { parseVia } from './via.ts'
import { CoalescingWriter } from './writer.ts'

export interface TcpClientOptions {
  /** One message from the server, in order. A throw ends the channel. */
  message (reading: Reading): void
  /** The channel is over; called once, and not when it could not be opened. */
  closed? (reason: ChannelClosed): void
  readonly limits: { readonly maxMessageSize: number, readonly maxHeaderBytes: number, readonly maxDepth: number }
  /** Longest time until the server has acknowledged the preamble, ms. Default 10 s. */
  readonly connectTimeoutMs?: number
  /** Unix socket to connect to; the URL is then only the via. */
  readonly socketPath?: string | undefined
  /** With them: TLS by an upgrade (`application/ssl-tls`). */
  readonly tls?: ConnectionOptions | undefined
  /** Default: binary XML with session tables, as .NET's NetTcpBinding. */
  readonly contentType?: string
  readonly clock?: Clock
}

/** Port of a net.tcp address that names none. */
const DEFAULT_PORT = 808
/** How long the server may take to end its side after ours. */
const CLOSE_MS = 5000

/** A net.tcp channel, as a client opens it. */
export interface TcpChannel extends DuplexChannel {
  /** Ends our side and resolves when the server has ended its own, or has not for 5 s. */
  close (): Promise<void>
  /** Whether this channel alone keeps the process running; it does from the start. */
  keepsProcess (does: boolean): void
}

/**
 * Opens a session: connects, says the preamble and waits for the server's word. Rejects with SoaError badFrame where the server says a fault,
 * with the socket's error where nobody can be reached, with the signal's reason when it aborts first.
 */
export async function openTcp (url: string, options: TcpClientOptions, signal?: AbortSignal): Promise<TcpChannel> {
  const via = parseVia(url)
  if (via === undefined) throw new SoaError('InvalidArgument', { argument: 'address', why: `net.tcp://HOST:PORT/PATH is expected, not ${url.slice(0, 200)}` })
  const session = new ClientSession(url, via, options)
  const stop = (): void => session.abort(new ChannelClosed('given up before it was open', { cause: signal?.reason }))
  if (signal?.aborted === true) stop()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    await session.opening
    return session
  } catch (error) {
    throw signal?.aborted === true ? signal.reason : error
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

class ClientSession implements TcpChannel {
  readonly path: string
  readonly baseUrl: string
  readonly opening: Promise<void>
  readonly #url: string
  readonly #options: TcpClientOptions
  readonly #over = new AbortController()
  readonly #decoder: FrameDecoder
  readonly #pump: FramePump
  readonly #codec: MessageCodec
  #socket: Socket
  #writer: CoalescingWriter
  #isOpen = false
  #saidEnd = false
  #opened: () => void = () => {}
  #refused: (error: unknown) => void = () => {}
  #disarm: () => void

  constructor (url: string, via: NonNullable<ReturnType<typeof parseVia>>, options: TcpClientOptions) {
    const { contentType = MSBINSESSION1, limits, connectTimeoutMs = 10_000, clock = systemClock } = options
    this.#url = url
    this.path = via.path
    this.baseUrl = via.baseUrl
    this.#options = options
    const codec = codecFor(contentType, limits)
    if (codec === undefined) throw new SoaError('InvalidArgument', { argument: 'contentType', why: `${contentType} is not spoken here` })
    this.#codec = codec
    this.#decoder = new FrameDecoder({ of: 'server', maxMessageSize: limits.maxMessageSize })
    this.opening = new Promise((resolve, reject) => { this.#opened = resolve; this.#refused = reject })
    this.#disarm = clock.after(connectTimeoutMs, () => this.abort(new ChannelClosed(`no answer of ${via.baseUrl} within ${connectTimeoutMs} ms`)))
    const { hostname, port } = addressOf(via.baseUrl)
    this.#socket = options.socketPath === undefined ? connectSocket({ host: hostname, port, noDelay: true, keepAlive: true }) : connectSocket({ path: options.socketPath })
    this.#writer = new CoalescingWriter(this.#socket)
    this.#watch(this.#socket)
    this.#pump = new FramePump(this.#socket, {
      decoder: this.#decoder,
      take: frame => this.#take(frame),
      failed: error => this.abort(error),
      ended: () => this.abort(new ChannelClosed(this.#saidEnd ? 'the server has closed the connection' : 'the server has closed the connection without End')),
    })
    const words = preamble({ via: url, contentType })
    this.#socket.write(options.tls === undefined ? Buffer.concat([words, PREAMBLE_END]) : Buffer.concat([words, upgradeRequest(SSL_TLS)]))
  }

  get signal (): AbortSignal { return this.#over.signal }

  #watch (socket: Socket): void {
    socket.on('error', error => this.abort(error))
    socket.once('close', () => this.abort(new ChannelClosed('the connection broke')))
  }

  #take (frame: Frame): void | Promise<void> {
    switch (frame.kind) {
      case 'preambleAck':
        this.#isOpen = true
        this.#disarm()
        this.#opened()
        return
      case 'upgradeResponse': return this.#upgrade()
      case 'envelope': this.#options.message(this.#codec.read(frame.bytes)); return
      case 'end':
        if (!this.#saidEnd) this.#writer.write([END]).catch(() => undefined) // the connection is closed next
        this.#finish(new ChannelClosed(this.#saidEnd ? 'ended' : 'the server has ended the channel'))
        this.#socket.destroySoon()
        return
      case 'fault': {
        const fault = framingFaultOf(frame.uri)
        throw fault === undefined ? new SoaError('badFrame', { why: `the server says ${frame.uri}`, framingFault: '' }) : framingError(fault, `the server says ${fault}`)
      }
      default: throw new Error(`a frame ${frame.kind} from a server`)
    }
  }

  async #upgrade (): Promise<void> {
    this.#pump.detach()
    // .NET sends no name of a server either: who it is, is checked by its certificate alone.
    const secure = connectTls({ ...this.#options.tls, socket: this.#socket })
    await new Promise<void>((resolve, reject) => { secure.once('secureConnect', resolve); secure.once('error', reject) })
    this.#watch(secure)
    this.#socket = secure
    this.#writer = new CoalescingWriter(secure)
    this.#decoder.upgraded()
    this.#pump.attach(secure)
    secure.write(PREAMBLE_END)
  }

  send (message: OutgoingMessage): Promise<void> {
    if (this.#saidEnd || this.#over.signal.aborted) return Promise.reject(this.#over.signal.reason ?? new ChannelClosed('our side has been ended'))
    let record: Buffer
    try {
      record = this.#codec.write({ to: this.#url, ...message }, true)
    } catch (error) {
      return Promise.reject(error as Error)
    }
    return this.#writer.write([record]).catch(error => { throw new ChannelClosed('the connection broke', { cause: error }) })
  }

  end (): void {
    if (this.#saidEnd || this.#over.signal.aborted) return
    this.#saidEnd = true
    this.#writer.write([END]).catch(() => undefined) // a connection that broke has ended as well
    this.#disarm = (this.#options.clock ?? systemClock).after(CLOSE_MS, () => this.abort(new ChannelClosed(`the server has not ended its side within ${CLOSE_MS} ms`)))
  }

  close (): Promise<void> {
    this.end()
    return new Promise(resolve => {
      if (this.#over.signal.aborted) resolve()
      else this.#over.signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  keepsProcess (does: boolean): void {
    if (does) this.#socket.ref()
    else this.#socket.unref()
  }

  /** At once, whatever is under way. */
  abort (error: unknown): void {
    this.#finish(error)
    this.#socket.destroy()
  }

  #finish (error: unknown): void {
    if (this.#over.signal.aborted) return
    this.#disarm()
    this.#pump.stop()
    const reason = error instanceof ChannelClosed ? error : new ChannelClosed(error instanceof Error ? error.message : String(error), { cause: error })
    this.#over.abort(reason)
    if (this.#isOpen) this.#options.closed?.(reason)
    else this.#refused(error)
  }
}

function addressOf (baseUrl: string): { hostname: string, port: number } {
  const [, bracketed, plain, port] = /^net\.tcp:\/\/(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/i.exec(baseUrl) ?? []
  return { hostname: bracketed ?? plain ?? '', port: Number(port ?? DEFAULT_PORT) }
}
