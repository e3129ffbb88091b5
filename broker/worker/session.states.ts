import { states } from '../../core/machine.ts'

/** The broker of one session ([broker-behaviour] 1.1 A). `idle` and `noClient` are the clocks sessionIdleTimeout and clientConnectionTimeout. */
export const BROKER = states({
  Started: { clientCame: 'Running', noClient: 'Ending', suspend: 'Ending', close: 'Ending', fail: 'Failed', cancel: 'Canceled' },
  Running: { lastClientLeft: 'Idle', suspend: 'Ending', close: 'Ending', fail: 'Failed', cancel: 'Canceled' },
  Idle: { clientCame: 'Running', idle: 'Ending', suspend: 'Ending', close: 'Ending', fail: 'Failed', cancel: 'Canceled' },
  Canceled: { idle: 'Ending', suspend: 'Ending', close: 'Ending', fail: 'Failed' },
  Failed: { idle: 'Ending', suspend: 'Ending', close: 'Ending' },
  Ending: {},
})

export type BrokerState = keyof typeof BROKER
