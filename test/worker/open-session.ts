import { on, type EventEmitter } from 'node:events'
import type { Test } from 'tap'
import type { Clock } from '../../core/clock.ts'
import { silent } from '../../core/log.ts'
import { SETTINGS, type Settings } from '../../config/settings.ts'
import { MemoryMessageStore } from '../../store/memory-store.ts'
import type { MessageStore } from '../../store/message-store.ts'
import type { SessionRecord } from '../../store/session-store.ts'
import type { TaskEvents, TaskInfo } from '../../store/placement-store.ts'
import type { CallResult, SoapCaller } from '../../transport/channel.ts'
import type { Envelope, Reading } from '../../wire/soap/envelope.ts'
import { userDataHeader } from '../../wire/soap/hpc-headers.ts'
import type { CustomBroker } from '../../broker/custom-broker.ts'
import type { CustomNeeds } from '../../broker/worker/custom-setup.ts'
import { DemandKeeper } from '../../broker/worker/demand.ts'
import { ServiceFacts } from '../../broker/worker/service-facts.ts'
import { BrokerSession } from '../../broker/worker/session.ts'
import type { BrokerClient } from '../../broker/worker/broker-client.ts'
import { ManualClock } from '../clock.ts'

export const never: AbortSignal = new AbortController().signal
export const FLUSH: { batchId: number, timeoutMs: number, signal: AbortSignal } = { batchId: -1, timeoutMs: 60_000, signal: never }

export const request = (n: number, more: Partial<Envelope> = {}): Envelope => ({
  v: 1, soap: 12, enc: 'utf8', action: 'urn:Echo', messageId: `urn:uuid:${n}`, userData: userDataHeader(String(n)), otherHeaders: [], prefixesInScope: [], body: Buffer.from(`<n>${n}</n>`), ...more,
})
export const reading = (envelope: Envelope, isFault = false): Reading => ({ envelope, batchId: -1, mustUnderstand: [], isFault, addressed: true })

/** For tests that say what becomes of tasks: `news.emit('tasks', [task])`. */
export type TaskNews = EventEmitter<{ tasks: [TaskInfo[]] }>

export interface OpenOptions {
  durable?: boolean
  store?: MessageStore
  clock?: Clock
  events?: TaskEvents
  connect?: (task: TaskInfo) => SoapCaller
  settings?: Partial<Settings>
  answer?: (sent: Envelope) => CallResult | Promise<CallResult>
  instances?: number
  news?: TaskNews
  custom?: CustomBroker
  program?: CustomNeeds
  record?: Partial<SessionRecord>
}

/** A session on a memory store whose one service instance echoes the body, unless the test says otherwise. */
export async function open (t: Test, options: Omit<OpenOptions, 'clock'> = {}) {
  const clock = new ManualClock()
  const opened = await openSession({ ...options, clock })
  t.teardown(async () => { const closing = opened.session.close('destroyed'); await clock.advance(0); await closing })
  return { ...opened, clock }
}

/** The same, ended by whoever opened it; also on another store, clock and grid. */
export async function openSession (options: OpenOptions) {
  const { clock = new ManualClock() } = options
  const defaults = Object.fromEntries(Object.entries(SETTINGS).map(([name, { default: value }]) => [name, value])) as unknown as Settings
  const settings: Settings = { ...defaults, ...options.settings }
  const record: SessionRecord = { sessionId: '7', service: 'Echo', durable: options.durable ?? false, priority: 2000, settings: {}, environment: {}, state: 'Starting', createdAt: '2026-01-01T00:00:00Z', ...options.record }
  const service = new ServiceFacts({ name: 'Echo', config: '', file: '/echo.config', documents: {}, addedAt: '' }, settings, 0, [
    { name: 'Echo', action: 'urn:Echo', inputElement: 'n', oneWay: false },
    { name: 'Tell', action: 'urn:Tell', inputElement: 'tell', oneWay: true },
  ])
  const ended: string[] = []
  const states: string[] = []
  const whys: string[] = []
  const targets: number[] = []
  const tasks: TaskInfo[] = Array.from({ length: options.instances ?? 1 }, (_, i) => ({ id: `1-${i}`, sessionId: '7', node: 'n1', machineName: 'n1', state: 'Running', capacity: 1, firstCoreIndex: i, address: 'http://127.0.0.1:1/', at: '' }))
  const caller: SoapCaller = {
    call: async sent => options.answer === undefined ? { outcome: 'answered', reading: reading({ ...sent, action: 'urn:EchoResponse' }) } : await options.answer(sent),
    close: async () => {},
  }
  const store = options.store ?? new MemoryMessageStore()
  const session: BrokerSession = new BrokerSession({
    record,
    service,
    store,
    demand: new DemandKeeper({
      board: { put: async demand => { targets.push(demand.target) }, remove: async () => { targets.push(-1) } },
      base: { sessionId: '7', service: 'Echo', priority: 2000, createdAt: '', coresPerUnit: 1, environment: {}, exclude: [], labels: {}, cancelGraceMs: 1 },
      minUnits: undefined,
      maxUnits: undefined,
      minWarm: settings.minWarm,
      maxConcurrentCalls: 0,
      reckonedCalls: settings.dispatcherCapacityInGrowShrink,
      prefetch: settings.serviceRequestPrefetchCount,
      adjustIntervalMs: settings.allocationAdjustInterval,
      shrinks: settings.automaticShrinkEnabled,
      idleTimeoutMs: settings.unitIdleTimeoutMs,
      outstanding: () => session.callsWanted,
      units: () => session.units,
      clock,
      log: silent,
    }),
    events: options.events ?? {
      snapshot: async () => ({ tasks, cursor: '0' }),
      async * follow (_, __, signal) {
        if (options.news !== undefined) for await (const [tasks] of on(options.news, 'tasks', { signal })) yield { tasks: tasks as TaskInfo[], cursor: '0' }
        await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
      },
    },
    connect: options.connect ?? (() => caller),
    exitHost: async () => true,
    taskFateTimeoutMs: 5000,
    custom: options.custom === undefined ? options.program : { name: options.custom.constructor.name, broker: options.custom, run: (_, call) => call(), close: async () => {} },
    clock,
    log: silent,
    ended: (ending, why) => ended.push(`${ending}: ${why}`),
    stateChanged: (state, why) => { states.push(state); whys.push(why) },
  })
  await session.open()
  return { session, ended, states, whys, targets, store, client: (id = 'c'): BrokerClient => session.client(id) }
}
