import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import type { MessageStore } from '../../store/message-store.ts'
import type { TaskEvents, TaskInfo } from '../../store/placement-store.ts'
import type { SessionRecord } from '../../store/session-store.ts'
import type { SoapCaller } from '../../transport/channel.ts'
import type { CustomNeeds } from './custom-setup.ts'
import type { DemandKeeper } from './demand.ts'
import type { ServiceFacts } from './service-facts.ts'

/** How a broker ends: destroyed (no trace left), suspended (durable, raised on the next call), or let go of after another broker took over. */
export type Ending = 'destroyed' | 'suspended' | 'lost'

/** What a broker is given to serve its session. */
export interface SessionNeeds {
  record: SessionRecord
  service: ServiceFacts
  store: MessageStore
  demand: DemandKeeper
  events: TaskEvents
  connect: (task: TaskInfo, slots: number) => SoapCaller
  /** Hosts are ours, and work on calls in the order in which they get them. */
  keepsOrder?: boolean
  /** Tells a host to end by itself; false: it does not take that. */
  exitHost: (task: TaskInfo) => Promise<boolean>
  taskFateTimeoutMs: number
  /** Undefined: the stock broker alone. */
  custom?: CustomNeeds | undefined
  clock: Clock
  log: Logger
  /** The broker has ended by itself (idle clocks, lost ownership). */
  ended: (ending: Ending, why: string) => void
  /** The session failed or was canceled: the record should say so. */
  stateChanged: (state: SessionRecord['state'], why: string) => void
}
