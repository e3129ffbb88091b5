import type { SoaError } from '../../core/errors.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { toFault } from '../../wire/soap/fault.ts'
import { requestActionHeader, responseCallbackIdHeader } from '../../wire/soap/hpc-headers.ts'
import type { StoredResponse } from '../../store/message-store.ts'
import { ChannelClosed, type DuplexChannel } from '../../transport/channel.ts'
import { endOfResponses, type EndReason } from '../../wsdl/end-of-responses.ts'
import type { Position, ReadEnd, ResponseReader } from './response-reader.ts'

/** One GetResponses call ([wire-contract] 1.4). */
export interface Wanted {
  /** Only responses to requests of this action; '' for all. */
  readonly action: string
  /** Goes back on everything that is pushed, as ResponseCallbackId. */
  readonly clientData: string
  readonly position: Position
  /** How many; Infinity (-1 on the wire): all to the end. */
  readonly count: number
}

interface Needs {
  reader: ResponseReader
  channel: DuplexChannel
  action: string
  clientData: string
  end: ReadEnd
  /** A message went out, or the end did. */
  pushed: (isEnd: boolean) => void
  failed: (error: unknown) => void
}

/** Messages read and written together: their bytes go out in few writes. */
const PAGE = 64
const PAGE_BYTES = 1024 * 1024

/**
 * Pushes a client's responses down the channel on which it asked for them ([broker-behaviour] 2.7): as many as its calls ask for, each call in its turn, and
 * when the last one is out EndOfResponses with the exact count. A send that got through is the acknowledgement; one that did not leaves the response where it was.
 */
export class ResponsePusher {
  readonly #needs: Needs
  readonly #over = new AbortController()
  #windows: number[] = []
  /** Pushed since the last Begin. */
  #sent = 0
  /** Counts the Begins: what was read before the newest one is not pushed after it. */
  #round = 0
  #wake: () => void = () => {}

  constructor (needs: Needs) {
    this.#needs = needs
    const { channel } = needs
    const over = (): void => this.#over.abort(channel.signal.reason)
    if (channel.signal.aborted) over()
    else channel.signal.addEventListener('abort', over, { once: true, signal: this.#over.signal })
    this.#run().catch(error => { if (!(error instanceof ChannelClosed) && !this.#over.signal.aborted) needs.failed(error) })
  }

  /** Whether a call is one more of those that this one serves: same filter, same client data, same channel. */
  serves (wanted: Wanted, channel: DuplexChannel): boolean {
    const { action, clientData } = this.#needs
    return !this.#over.signal.aborted && channel === this.#needs.channel && wanted.action === action && wanted.clientData === clientData
  }

  want ({ position, count }: Wanted): void {
    if (position === 'Begin') {
      this.#needs.reader.rewind()
      this.#round++
      this.#sent = 0
      this.#windows = []
    }
    this.#windows.push(count)
    this.#wake()
  }

  /** Another reader takes over; nothing more is pushed by this one. */
  dispose (): void { this.#over.abort(new ChannelClosed('another GetResponses took its place')) }

  async #run (): Promise<void> {
    const { reader, action, end } = this.#needs
    const { signal } = this.#over
    while (!signal.aborted) {
      const window = this.#windows[0]
      if (window === undefined) { await this.#called(); continue }
      const round = this.#round
      const from = reader.position('Current')
      const found = await reader.look(from, Math.min(window, PAGE), action, PAGE_BYTES)
      if (round !== this.#round || signal.aborted) continue
      if (found.responses.length > 0 || found.next > from) await this.#push(found.responses, found.next)
      if (round !== this.#round) continue
      if (found.isEnd) await this.#end('Success')
      else if (found.next === from) {
        const ended = await reader.more(from, end, signal)
        if (ended !== undefined) await this.#stop(ended)
      }
    }
  }

  async #push (responses: readonly StoredResponse[], next: number): Promise<void> {
    const { reader, pushed } = this.#needs
    const round = this.#round
    reader.hand(responses, next)
    if (this.#windows[0] !== undefined) {
      this.#windows[0] -= responses.length
      if (this.#windows[0] <= 0) this.#windows.shift()
    }
    this.#sent += responses.length
    await Promise.all(responses.map(({ envelope, requestAction }) => this.#send(envelope, [requestActionHeader(requestAction)])))
    // After a Begin meanwhile the client asked for these again.
    if (round === this.#round) await reader.acknowledge()
    pushed(false)
  }

  /** Why no more will come: a purge or timeout is said by the end itself, anything else by a fault before it, which counts as a message. */
  async #stop (why: SoaError): Promise<void> {
    if (why.fault === 'ClientPurged' || why.fault === 'ClientTimeout') { await this.#end(why.fault); return }
    this.#sent++
    await Promise.all([this.#send(toFault(why, { soap: 12, addressed: true })), this.#end('Success')])
  }

  async #end (reason: EndReason): Promise<void> {
    this.#windows = []
    await this.#send(endOfResponses({ count: this.#sent, reason }))
    this.#needs.pushed(true)
  }

  #send (envelope: Envelope, headers: readonly Uint8Array[] = []): Promise<void> {
    const { channel, clientData } = this.#needs
    return channel.send({ envelope, extraHeaders: [...headers, responseCallbackIdHeader(clientData)] })
  }

  #called (): Promise<void> {
    return new Promise(resolve => {
      const { signal } = this.#over
      this.#wake = () => { signal.removeEventListener('abort', this.#wake); resolve() }
      signal.addEventListener('abort', this.#wake, { once: true })
      if (signal.aborted) resolve()
    })
  }
}
