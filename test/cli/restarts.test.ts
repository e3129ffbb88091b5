import t from 'tap'
import { isFinal, restartDelay } from '../../cli/up/restarts.ts'

t.test('restarts: from 0.2 s, twice as long each time, 5 s at most', async t => {
  const deaths: number[] = []
  const delays = Array.from({ length: 8 }, () => { deaths.push(1000); return restartDelay(deaths, 1000) })
  t.strictSame(delays, [200, 400, 800, 1600, 3200, 5000, 5000, 5000])
})

t.test('restarts: ten deaths in a minute are borne, the eleventh is not', async t => {
  t.equal(restartDelay(Array(10).fill(0), 59_999), 5000)
  t.equal(restartDelay(Array(11).fill(0), 59_999), 'give up')
  t.equal(restartDelay([...Array<number>(10).fill(0), 60_000], 60_000), 200, 'what is over a minute ago does not count')
})

t.test('restarts: usage, a missing program and a refusal are not tried again; failures and signals are', async t => {
  t.strictSame([0, 1, 2, 3, 4, 5, null].map(isFinal), [false, false, true, true, false, true, false])
})
