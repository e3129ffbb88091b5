import type { RegisteredService } from '../../store/service-registry.ts'
import type { Settings } from '../../config/settings.ts'
import type { Envelope, QName } from '../../wire/soap/envelope.ts'
import type { PoolLimits } from './dispatcher-pool.ts'

/** What a broker knows of an operation of the service, from its WSDL. */
export interface ServiceOperation { readonly name: string, readonly action: string, readonly inputElement: QName | undefined, readonly oneWay: boolean, readonly replyAction?: string | undefined }

/** The service as its broker sees it: settings after all overrides, operations as far as there is a WSDL. */
export class ServiceFacts {
  readonly registered: RegisteredService
  readonly settings: Settings
  /** 0: as many as the task has cores. */
  readonly maxConcurrentCalls: number
  readonly operations: readonly ServiceOperation[]
  /** As the registration file names it; empty: the only one of the WSDL. */
  readonly contract: string
  readonly #byAction: ReadonlyMap<string, ServiceOperation>

  constructor (registered: RegisteredService, settings: Settings, maxConcurrentCalls: number, operations: readonly ServiceOperation[], contract = '') {
    this.registered = registered
    this.settings = settings
    this.maxConcurrentCalls = maxConcurrentCalls
    this.operations = operations
    this.contract = contract
    this.#byAction = new Map(operations.map(operation => [operation.action, operation]))
  }

  /** The action that a request is for: its own, or by its body element where it names none ([user-pain] "Missing action"). */
  actionOf (envelope: Envelope, bodyElement: QName | undefined): string {
    if (envelope.action !== '') return envelope.action
    return this.operations.find(operation => operation.inputElement === bodyElement)?.action ?? ''
  }

  /** The WSDL says that this action has a reply. False also where nothing is known of it. */
  hasReply (action: string): boolean { return this.#byAction.get(action)?.oneWay === false }

  /** The action of its reply, for hosts that do not say it; undefined: not known. */
  replyActionOf (action: string): string | undefined { return this.#byAction.get(action)?.replyAction }

  isOneWay (action: string): boolean { return this.#byAction.get(action)?.oneWay ?? false }

  /** What a dispatcher has to keep to. */
  dispatchLimits (taskFateTimeoutMs: number): PoolLimits {
    const { settings } = this
    return {
      maxConcurrentCalls: this.maxConcurrentCalls,
      prefetch: settings.serviceRequestPrefetchCount,
      operationTimeoutMs: settings.serviceOperationTimeout,
      resendLimit: settings.messageResendLimit,
      maxUncounted: settings.maxUncountedTries,
      initializationTimeoutMs: settings.serviceInitializationTimeout,
      taskFateTimeoutMs,
      cancelGraceMs: settings.taskCancelGracePeriod,
      retryPeriodMs: settings.endpointNotFoundRetryPeriod,
    }
  }
}
