import { randomUUID } from 'node:crypto'
import type { Logger } from '../../core/log.ts'
import type { TaskInfo } from '../../store/placement-store.ts'
import type { SoapCaller } from '../../transport/channel.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { SERVICE_HOST } from '../../wsdl/contracts.ts'
import { encodeRequest } from '../../wsdl/shapes.ts'

/** A host that cannot say "yes" in this time is ended by its node. */
const ANSWER_MS = 2000
/** [broker-behaviour] 4.7: Exit is tried once more. */
const TRIES = 2

const envelope = (): Envelope => {
  const { Exit } = SERVICE_HOST.operations
  return { v: 1, soap: 12, enc: 'utf8', action: Exit.action, messageId: `urn:uuid:${randomUUID()}`, otherHeaders: [], prefixesInScope: [], body: encodeRequest(Exit, {}) }
}

/** Tells a host to end by itself, with its OnExiting (IHpcServiceHost, [wire-contract] 1.6). False: it has no controller, or none that takes it; its node ends it then. */
export async function exitHost (task: TaskInfo, connect: (url: string) => SoapCaller, log: Pick<Logger, 'debug'>): Promise<boolean> {
  if (task.controller === undefined) return false
  const caller = connect(task.controller)
  try {
    for (let tried = 0; tried < TRIES; tried++) {
      const result = await caller.call(envelope(), { timeoutMs: ANSWER_MS, signal: AbortSignal.timeout(ANSWER_MS), isOneWay: true })
      if (result.outcome === 'accepted' || (result.outcome === 'answered' && !result.reading.isFault)) return true
      log.debug({ taskId: task.id, outcome: result.outcome }, 'a host did not take Exit')
      // Whoever answered has understood, and says no; only what got lost is said again.
      if (result.outcome === 'answered' || result.outcome === 'badReply') return false
    }
    return false
  } finally {
    await caller.close()
  }
}
