import t from 'tap'
import { Throttle } from '../../broker/worker/throttle.ts'
import { settle } from '../clock.ts'

t.test('throttle: pauses above start, goes on below stop, refuses nothing', async t => {
  const throttle = new Throttle({ start: 4, stop: 2 })
  const { signal } = new AbortController()
  throttle.add(4)
  await throttle.open(signal)
  t.notOk(throttle.isThrottling, 'at the start threshold requests are still taken')
  throttle.add()
  let isOpen = false
  const waiting = throttle.open(signal).then(() => { isOpen = true })
  await settle()
  t.notOk(isOpen)
  throttle.remove(3)
  await settle()
  t.notOk(isOpen, 'at the stop threshold it still waits')
  throttle.remove()
  await waiting
  t.ok(isOpen)
})

t.test('throttle: who gives up waiting is told why and leaves nothing behind', async t => {
  const throttle = new Throttle({ start: 0, stop: 0 })
  const stop = new AbortController()
  throttle.add()
  const waiting = throttle.open(stop.signal)
  stop.abort(new Error('the caller is gone'))
  await t.rejects(waiting, { message: 'the caller is gone' })
})

t.test('throttle: a durable session never pauses', async t => {
  const throttle = new Throttle({ start: Infinity, stop: Infinity })
  throttle.add(10_000_000)
  await throttle.open(new AbortController().signal)
  t.notOk(throttle.isThrottling)
})
