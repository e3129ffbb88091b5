import type { Logger } from '../../core/log.ts'
import type { StateChange } from '../../store/message-store.ts'
import { bodyXml } from '../../wire/soap/body-xml.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { userDataText } from '../../wire/soap/hpc-headers.ts'
import type { CustomDispatcher, CustomRequest, CustomResponse, CustomSession, CustomState } from '../custom-broker.ts'
import type { DurableMap } from './custom-state.ts'

/** What hooks see of a request: values that are made when they are looked at. */
export class RequestView implements CustomRequest {
  readonly #envelope: Envelope
  readonly clientId: string
  readonly lane: number
  #body: string | undefined

  constructor (envelope: Envelope, clientId: string, lane = 0) {
    this.#envelope = envelope
    this.clientId = clientId
    this.lane = lane
  }

  get messageId (): string { return this.#envelope.messageId ?? '' }
  get action (): string { return this.#envelope.action }
  get userData (): string | undefined { return this.#envelope.userData === undefined ? undefined : userDataText(this.#envelope.userData) }
  get body (): string { return (this.#body ??= bodyXml(this.#envelope)) }
}

export class ResponseView implements CustomResponse {
  readonly #envelope: Envelope
  readonly isFault: boolean
  #body: string | undefined

  constructor (envelope: Envelope, isFault: boolean) {
    this.#envelope = envelope
    this.isFault = isFault
  }

  get action (): string { return this.#envelope.action }
  get body (): string { return (this.#body ??= bodyXml(this.#envelope)) }
}

/** What of a session its custom broker may see, the same for all hooks. */
export interface SessionFacts {
  readonly id: string
  readonly service: string
  readonly isDurable: boolean
  readonly settings: Readonly<Record<string, unknown>>
  readonly log: Logger
  readonly signal: AbortSignal
  readonly dispatchers: () => readonly CustomDispatcher[]
}

/** The session as one hook gets it. With `changes`, what the hook puts into the state is committed with what the hook is about. */
export class HookSession implements CustomSession {
  readonly #facts: SessionFacts
  readonly state: CustomState

  constructor (facts: SessionFacts, map: DurableMap, changes?: StateChange[]) {
    this.#facts = facts
    this.state = map.recording(changes)
  }

  get id (): string { return this.#facts.id }
  get service (): string { return this.#facts.service }
  get isDurable (): boolean { return this.#facts.isDurable }
  get settings (): Readonly<Record<string, unknown>> { return this.#facts.settings }
  get logger (): CustomSession['logger'] { return this.#facts.log }
  get signal (): AbortSignal { return this.#facts.signal }
  get dispatchers (): readonly CustomDispatcher[] { return this.#facts.dispatchers() }
}
