import t from 'tap'
import { silent } from '../../core/log.ts'
import { Lease } from '../../broker/worker/lease.ts'
import { ManualClock } from '../clock.ts'

/** A worker of sessions 1 and 2; `owner` says whose the records say they are. */
function worker (t: { teardown: (end: () => unknown) => unknown }) {
  const clock = new ManualClock()
  const owner: Record<string, string> = { 1: 'me', 2: 'me' }
  const served = ['1', '2']
  const seen = { beats: 0, letGo: [] as string[], disowned: [] as string[], isAway: false }
  const lease: Lease = new Lease({
    beat: async () => { if (seen.isAway) throw new Error('away'); seen.beats++ },
    served: () => served,
    isMine: async id => { if (seen.isAway) throw new Error('away'); return owner[id] === 'me' },
    letGo: id => { seen.letGo.push(id); served.splice(served.indexOf(id), 1); lease.refused() },
    disowned: why => { seen.disowned.push(why) },
    leaseMs: 15_000,
    beatMs: 3000,
    clock,
    log: silent
  })
  t.teardown(() => lease.end())
  return { clock, owner, served, seen, lease }
}

t.test('lease: a worker that beats is left alone, and asks nobody', async t => {
  const { clock, owner, seen, lease } = worker(t)
  await lease.start()
  owner[1] = 'other'
  await clock.advance(60_000)
  t.match(seen, { beats: 21, letGo: [], disowned: [] })
})

t.test('lease: a worker that stood still past its lease lets go of what others took, and ends before it beats again', async t => {
  const { clock, owner, seen, lease } = worker(t)
  await lease.start()
  owner[1] = 'other'
  clock.jump(20_000)
  await clock.advance(0)
  t.match(seen, { beats: 1, letGo: ['1'], disowned: [/did not beat for more than 15000 ms/] })
  await clock.advance(60_000)
  t.match(seen, { beats: 1, disowned: { length: 1 } }, 'and beats no more')
})

t.test('lease: a store that was away for everybody costs nothing', async t => {
  const { clock, seen, lease } = worker(t)
  await lease.start()
  seen.isAway = true
  await clock.advance(120_000)
  t.equal(seen.beats, 1)
  seen.isAway = false
  await clock.advance(3000)
  t.match(seen, { beats: 2, letGo: [], disowned: [] }, 'its sessions are still its own')
})

t.test('lease: a fence with the lease in hand ends one session, and the worker only when it has no other', async t => {
  const { clock, owner, served, seen, lease } = worker(t)
  await lease.start()
  const fenced = (id: string): void => { owner[id] = 'other'; served.splice(served.indexOf(id), 1); lease.refused() }
  fenced('1')
  await clock.advance(3000)
  t.match(seen, { letGo: [], disowned: [], beats: 2 })
  fenced('2')
  await clock.advance(0)
  t.match(seen, { disowned: [/others' now/] })
})
