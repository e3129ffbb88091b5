import type { Socket } from 'node:net'
import { TLSSocket, type SecureContext } from 'node:tls'
import type { Clock } from '../../core/clock.ts'
import { isSoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { FrameDecoder, type Frame } from '../../wire/framing/decoder.ts'
import { END, faultRecord, PREAMBLE_ACK, UPGRADE_RESPONSE } from '../../wire/framing/encoder.ts'
import { framingError, framingFault } from '../../wire/framing/faults.ts'
import { NEGOTIATE, SSL_TLS } from '../../wire/framing/records.ts'
import type { DuplexEndpoint } from '../channel.ts'
import { whyNotTrusted } from './client-certificate.ts'
import { codecFor } from './codec.ts'
import { FramePump } from './frame-pump.ts'
import type { TcpLimits } from './limits.ts'
import type { MessageRoom } from './message-room.ts'
import { ServedSession } from './served-session.ts'
import { parseVia, type Via } from './via.ts'

export interface TlsOptions {
  readonly context: SecureContext
  /** `required`: clients show a certificate that the context's CA has signed. `none`: nobody is asked. */
  readonly clientCertificate: 'none' | 'required'
  /** Sessions without TLS are refused. */
  readonly isRequired: boolean
}

export interface ServingNeeds {
  /** What is at a path; undefined: nothing. */
  route (path: string): DuplexEndpoint | undefined | Promise<DuplexEndpoint | undefined>
  readonly tls?: TlsOptions | undefined
  readonly room: MessageRoom
  readonly limits: TcpLimits
  readonly clock: Clock
  readonly log: Logger
}

/** What a preamble said, and who it is for. */
interface Agreed { endpoint: DuplexEndpoint, via: Via, frame: Extract<Frame, { kind: 'preamble' }> }

/** Of messages before it is known who will read them. */
const SMALLEST_MESSAGE_LIMIT = 65_536
/** How long a client that was refused may take to read why. */
const LINGER_MS = 2000

/** The server's end of one net.tcp connection: session after session ([MC-NMF] 3.2; what .NET does of it: facts.md 2). */
export class ServedConnection {
  readonly #needs: ServingNeeds
  readonly #raw: Socket
  readonly #decoder = new FrameDecoder({ of: 'client', maxMessageSize: SMALLEST_MESSAGE_LIMIT })
  readonly #pump: FramePump
  /** Told once the first preamble is complete, or the connection over. */
  readonly #opened: () => void
  #socket: Socket
  #session: ServedSession | undefined
  #sessions = 0
  #agreed: Agreed | undefined
  #disarm: () => void = () => {}
  #isOver = false

  constructor (socket: Socket, needs: ServingNeeds, opened: () => void = () => {}) {
    this.#needs = needs
    this.#opened = opened
    this.#raw = this.#socket = socket
    socket.setNoDelay(true)
    this.#arm(needs.limits.preambleTimeoutMs, () => { needs.log.debug({ state: this.#decoder.state }, 'no complete preamble in time'); this.#destroy('no complete preamble in time') })
    socket.on('error', error => needs.log.trace({ err: error }, 'a connection broke'))
    socket.once('close', () => this.#closed())
    this.#pump = new FramePump(socket, {
      decoder: this.#decoder,
      take: frame => this.#take(frame),
      failed: error => this.#failed(error),
      ended: () => this.#destroy(this.#session === undefined ? 'the client has left' : 'the client has left without End'),
    })
  }

  /** Ends the session in order, then the connection; cuts it after `closeTimeoutMs`. */
  close (): void {
    if (this.#session === undefined) this.#destroy('the server stops')
    else this.#session.end()
  }

  #arm (ms: number, then: () => void): void {
    this.#disarm()
    this.#disarm = this.#needs.clock.after(ms, then, { unref: true })
  }

  #take (frame: Frame): void | Promise<void> {
    switch (frame.kind) {
      case 'preamble': return this.#preamble(frame)
      case 'upgradeRequest': return this.#upgrade(frame.name)
      case 'preambleEnd': return this.#open()
      case 'envelope': return this.#session?.take(frame.bytes)
      case 'end': return this.#ended()
      default: throw new Error(`a frame ${frame.kind} from a client`)
    }
  }

  async #preamble (frame: Extract<Frame, { kind: 'preamble' }>): Promise<void> {
    const { route, limits } = this.#needs
    // A connection that waited for its next session has begun one: the clock of preambles runs.
    if (this.#sessions > 0) this.#arm(limits.preambleTimeoutMs, () => this.#destroy('no complete preamble in time'))
    const via = parseVia(frame.via)
    const endpoint = via === undefined ? undefined : await route(via.path)
    if (via === undefined || endpoint === undefined) {
      // .NET pools connections by host and port, so a later session may be for somebody whom this process does not know. It takes a new connection when this one ends without a word.
      if (this.#sessions > 0) { this.#destroy('the next session is for another endpoint'); return }
      throw framingError('EndpointNotFound', `nothing listens at ${frame.via.slice(0, 200)}`)
    }
    if (codecFor(frame.contentType, endpoint.limits) === undefined) throw framingError('ContentTypeInvalid', `content type ${frame.contentType.slice(0, 100)} is not read here`)
    this.#agreed = { endpoint, via, frame }
    this.#decoder.maxMessageSize = endpoint.limits.maxMessageSize
  }

  async #upgrade (name: string): Promise<void> {
    const { tls, log } = this.#needs
    if (name === NEGOTIATE) throw framingError('UpgradeInvalid', 'Windows security (application/negotiate) is not served: use a binding with security mode None, or Transport with a certificate')
    if (name !== SSL_TLS || tls === undefined) throw framingError('UpgradeInvalid', name === SSL_TLS ? 'TLS is not configured here (tlsCertificate)' : `an upgrade to ${name.slice(0, 100)} is not served`)
    this.#pump.detach()
    this.#socket.write(UPGRADE_RESPONSE)
    const secure = new TLSSocket(this.#socket, { isServer: true, secureContext: tls.context, requestCert: tls.clientCertificate === 'required', rejectUnauthorized: tls.clientCertificate === 'required' })
    secure.on('error', error => log.debug({ err: error }, 'TLS failed'))
    await new Promise<void>((resolve, reject) => {
      secure.once('secure', () => {
        const refusal = tls.clientCertificate === 'required' ? whyNotTrusted(secure) : undefined
        if (refusal === undefined) resolve()
        else { secure.destroy(); reject(refusal) }
      })
      secure.once('close', () => reject(new Error('the connection ended within the TLS handshake')))
    })
    this.#socket = secure
    secure.once('close', () => this.#closed())
    this.#decoder.upgraded()
    this.#pump.attach(secure)
  }

  #open (): void {
    const { tls, room, limits, clock, log } = this.#needs
    const { endpoint, via, frame } = this.#agreed as Agreed
    if (tls?.isRequired === true && this.#socket === this.#raw) throw framingError('UpgradeInvalid', 'this endpoint is served over TLS only (application/ssl-tls)')
    this.#disarm()
    this.#opened()
    this.#sessions++
    this.#socket.write(PREAMBLE_ACK)
    const codec = codecFor(frame.contentType, endpoint.limits) as NonNullable<ReturnType<typeof codecFor>>
    this.#session = new ServedSession({
      socket: this.#socket,
      endpoint,
      via,
      codec,
      mode: frame.mode,
      room,
      limits,
      clock,
      hold: () => this.#pump.hold(),
      release: () => this.#pump.release(),
      ending: () => this.#arm(limits.closeTimeoutMs, () => this.#destroy('the client did not end its side in time')),
      log,
    })
  }

  /** The client's End: what is in hand is answered, then comes ours; the connection may carry another session. */
  async #ended (): Promise<void> {
    const session = this.#session
    if (session === undefined) { this.#socket.write(END); return }
    await session.ended()
    if (this.#isOver) return
    this.#session = undefined
    // After TLS .NET goes on in clear on the raw socket, where nobody can tell the last TLS record from the next preamble: closing costs it a new connection.
    if (session.isEndedByUs || this.#socket !== this.#raw) { this.#socket.end(); this.#arm(LINGER_MS, () => this.#destroy('closed')); return }
    this.#arm(this.#needs.limits.idleTimeoutMs, () => { this.#socket.end(); this.#arm(LINGER_MS, () => this.#destroy('idle')) })
  }

  /** Says why in the one form that a net.tcp client understands, and closes. */
  #failed (error: unknown): void {
    const { log } = this.#needs
    const why = error instanceof Error ? error.message : String(error)
    if (isSoaError(error, 'badFrame')) log.info({ why }, 'a net.tcp connection was refused')
    else log.warn({ err: error as Error }, 'a net.tcp connection failed')
    this.#session?.lost(why)
    this.#session = undefined
    if (this.#socket.destroyed) return
    const fault = framingFault(error)
    if (fault !== undefined) this.#socket.write(faultRecord(fault))
    this.#socket.end()
    // The client may be in the middle of saying something: closing under it would take the fault away.
    this.#socket.resume()
    this.#arm(LINGER_MS, () => this.#destroy(why))
  }

  #destroy (why: string): void {
    this.#session?.lost(why)
    this.#session = undefined
    this.#socket.destroy()
    this.#raw.destroy()
    this.#closed()
  }

  #closed (): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#pump.stop()
    this.#disarm()
    this.#session?.lost('the connection is gone')
    this.#session = undefined
    if (this.#socket !== this.#raw) this.#raw.destroy()
    this.#opened()
  }
}
