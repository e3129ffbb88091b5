import { SoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { TaskInfo } from '../../store/placement-store.ts'
import type { SessionView } from '../contract.ts'
import { FAILURES_THAT_TELL } from './dispatcher-pool.ts'
import { hostFailureText } from './host-failure.ts'

/**
 * Hosts that never took a call. Stored requests wait: the service may be mended, and then they run. Whoever waits for an answer or for responses is told, once it is plain
 * that no instance comes ([broker-behaviour] 4.8, where HPC Pack blacklists the nodes and fails the session in the end).
 */
export class StartTrouble {
  readonly #log: Pick<Logger, 'warn'>
  #last: SessionView['lastFailure']
  #why: SoaError | undefined

  constructor (log: Pick<Logger, 'warn'>) { this.#log = log }

  /** The latest that failed, for people. */
  get last (): SessionView['lastFailure'] { return this.#last }
  /** No instance runs, and the last attempts to start one have failed. */
  get why (): SoaError | undefined { return this.#why }

  /** @param inARow failures with none in between that got so far · @returns why no instance comes, when that is plain */
  failed (task: TaskInfo, inARow: number, areOthersThere: boolean): SoaError | undefined {
    const { why = '', stderr = '' } = task.exit ?? {}
    this.#last = { taskId: task.id, node: task.node, at: task.at, why, stderr }
    this.#log.warn({ taskId: task.id, node: task.node, why, stderr, inARow }, 'service host failed before it took a call')
    if (inARow < FAILURES_THAT_TELL || areOthersThere) return undefined
    return (this.#why = new SoaError('Service_InitializeFailed', { why: hostFailureText({ code: null, signal: null, why, stderr }) }))
  }

  /** An instance takes calls. */
  over (): void { this.#why = undefined }
}
