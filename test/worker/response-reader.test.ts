import t from 'tap'
import { ResponseReader } from '../../broker/worker/response-reader.ts'
import { Signal } from '../../broker/worker/signal.ts'
import { Throttle } from '../../broker/worker/throttle.ts'
import type { StoredResponse } from '../../store/message-store.ts'
import { ManualClock, settle } from '../clock.ts'
import { collectGarbage } from '../garbage.ts'
import { never, request } from './open-session.ts'

for (const isDurable of [true, false]) {
  t.test(`response reader, ${isDurable ? 'durable' : 'interactive'}: a page that was handed over is not held until the next one is asked for`, async t => {
    const handedOut: Array<WeakRef<StoredResponse>> = []
    const reader = new ResponseReader({
      queue: {
        async read (from, count) {
          const page = Array.from({ length: count }, (_, i) => ({ at: from + i, seq: from + i + 1, envelope: request(from + i), isFault: false, requestAction: 'urn:Echo' }))
          for (const response of page) handedOut.push(new WeakRef(response))
          return page
        },
        release: async () => {},
        changed: new Signal(),
        isAllProcessed: false,
        responses: 100,
      },
      isDurable,
      throttle: new Throttle({ start: Infinity, stop: Infinity }),
      clock: new ManualClock(),
      gone: () => undefined,
    })
    const places = async (): Promise<number[]> => {
      const { responses } = await reader.pull('Current', 3, '', { maxBytes: 1e9, signal: never, end: () => undefined })
      return responses.map(({ at }) => at)
    }
    t.same(await places(), [0, 1, 2])
    await settle()
    collectGarbage()
    t.same(handedOut.map(response => response.deref()?.at), [undefined, undefined, undefined])
    t.same(await places(), [3, 4, 5], 'and it goes on from there')
  })
}
