import t from 'tap'
import { Progress } from '../../service-host/progress.ts'
import { ManualClock } from '../clock.ts'

function watched (idleMs: number, hangMs: number) {
  const clock = new ManualClock()
  const events: string[] = []
  const progress = new Progress({ idleMs, hangMs, clock, idle: () => events.push('idle'), hung: () => events.push('hung') })
  return { clock, events, progress }
}

t.test('progress: a host that never had a call is never idle, and one that had is after idleMs without another', async t => {
  const { clock, events, progress } = watched(1000, -1)
  await clock.advance(10_000)
  t.same(events, [], 'started ahead of need')
  progress.received()
  await clock.advance(50_000)
  t.same(events, [], 'a long call is not idleness')
  progress.answered()
  await clock.advance(999)
  progress.received()
  progress.answered()
  await clock.advance(999)
  t.same(events, [])
  await clock.advance(1)
  t.same(events, ['idle'])
})

t.test('progress: calls in hand without a step for hangMs are hung; each call that comes or is answered is a step', async t => {
  const { clock, events, progress } = watched(3_600_000, 1000)
  progress.received()
  progress.answered()
  await clock.advance(3000)
  t.same(events, [], 'nothing in hand')
  progress.received()
  for (const step of [() => progress.received(), () => progress.answered(), () => progress.received()]) {
    await clock.advance(900)
    step()
  }
  t.same(events, [])
  await clock.advance(999)
  t.same(events, [])
  await clock.advance(1)
  t.same(events, ['hung'], 'found in time although the idle clock is the longer one')
  await clock.advance(10_000_000)
  t.same(events, ['hung'], 'told once')
})

t.test('progress: with both off, and after stop, no timer is left', async t => {
  const off = watched(-1, -1)
  off.progress.received()
  off.progress.answered()
  t.equal(off.clock.pending, 0)
  const stopped = watched(10, 10)
  stopped.progress.received()
  stopped.progress.stop()
  stopped.progress.answered()
  await stopped.clock.advance(100)
  t.same(stopped.events, [])
  t.equal(stopped.clock.pending, 0)
})

t.test('progress: a thousand steps are one timer', async t => {
  const { clock, progress } = watched(5000, 1000)
  for (let i = 0; i < 500; i++) { progress.received(); progress.answered() }
  t.equal(clock.pending, 1)
})
