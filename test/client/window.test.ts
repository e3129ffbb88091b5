import t from 'tap'
import { Window } from '../../client/window.ts'

/** Work that ends when told to. */
function job () {
  let finish = (): void => {}
  let hasStarted = false
  const done = new Promise<void>(resolve => { finish = resolve })
  return { get hasStarted () { return hasStarted }, finish: () => finish(), run: async () => { hasStarted = true; await done } }
}
const turns = async (n = 10): Promise<void> => { for (let i = 0; i < n; i++) await Promise.resolve() }

t.test('window: as many run at once as its size says, the others in the order they came', async t => {
  const window = new Window(2)
  const jobs = [job(), job(), job(), job()]
  const ends = jobs.map(one => window.run(one.run))
  await turns()
  t.same(jobs.map(one => one.hasStarted), [true, true, false, false])
  jobs[1]?.finish()
  await turns()
  t.same(jobs.map(one => one.hasStarted), [true, true, true, false])
  for (const one of jobs) one.finish()
  await Promise.all(ends)
  t.equal(window.inFlight, 0)
})

t.test('window: quiet waits for what is in flight, runs alone, and lets those in that came meanwhile', async t => {
  const window = new Window(4)
  const before = job(); const alone = job(); const after = job()
  const ends = [window.run(before.run), window.quiet(alone.run)]
  await turns()
  ends.push(window.run(after.run))
  await turns()
  t.same([alone.hasStarted, after.hasStarted], [false, false], 'one is still in flight')
  before.finish()
  await turns()
  t.same([alone.hasStarted, after.hasStarted], [true, false], 'nobody comes in meanwhile')
  alone.finish()
  await turns()
  t.equal(after.hasStarted, true)
  after.finish()
  await Promise.all(ends)
})

t.test('window: two quiet ones follow each other, also when the first fails', async t => {
  const window = new Window(4)
  const order: string[] = []
  const first = window.quiet(async () => { order.push('first'); throw new Error('no') })
  const second = window.quiet(async () => { order.push('second') })
  await t.rejects(first, { message: 'no' })
  await second
  await window.run(async () => { order.push('sent') })
  t.same(order, ['first', 'second', 'sent'])
})

t.test('window: one that gives up while waiting takes no place and does no work', async t => {
  const window = new Window(1)
  const first = job(); const gone = job(); const last = job()
  const stop = new AbortController()
  const ends = [window.run(first.run)]
  const leaving = window.run(gone.run, stop.signal)
  ends.push(window.run(last.run))
  stop.abort(new Error('enough'))
  await t.rejects(leaving, { message: 'enough' })
  first.finish()
  await turns()
  t.same([gone.hasStarted, last.hasStarted], [false, true])
  last.finish()
  await Promise.all(ends)
  t.equal(window.inFlight, 0)
})

t.test('window: work that fails gives its place back', async t => {
  const window = new Window(1)
  await t.rejects(window.run(async () => { throw new Error('broken') }), { message: 'broken' })
  await window.run(async () => {})
  t.equal(window.inFlight, 0)
})
