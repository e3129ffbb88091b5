import t from 'tap'
import { silent } from '../../core/log.ts'
import type { Demand } from '../../store/placement-store.ts'
import { DemandKeeper, unitsFor, type DemandNeeds } from '../../broker/worker/demand.ts'
import { goingNow, idleUnits, type UnitLoad } from '../../broker/worker/shrink.ts'
import { ManualClock, settle } from '../clock.ts'

const load = (id: string, more: Partial<UnitLoad> = {}): UnitLoad => ({ id, node: 'n1', cores: 1, capacity: 1, inFlight: 0, isBlocked: false, ...more })
const loads = (...inFlight: number[]): UnitLoad[] => inFlight.map((calls, i) => load(`1-${i}`, { inFlight: calls }))

/** A demand over instances that the test describes; `puts` are the demands written. */
async function bench (more: Partial<DemandNeeds> = {}, units: UnitLoad[] = []) {
  const clock = new ManualClock()
  const grid = { work: 0, loads: units, starting: 0, leaving: [] as string[], avoided: [] as string[], busy: [] as string[] }
  const puts: Demand[] = []
  const left: string[] = []
  const keeper = new DemandKeeper({
    board: { put: async demand => { puts.push(demand) }, remove: async () => {} },
    base: { sessionId: '7', service: 'Echo', priority: 2000, createdAt: '', coresPerUnit: 1, environment: {}, exclude: [], labels: {}, cancelGraceMs: 1 },
    minUnits: undefined,
    maxUnits: undefined,
    minWarm: 0,
    maxConcurrentCalls: 0,
    reckonedCalls: 0,
    prefetch: 0,
    idleTimeoutMs: 10_000,
    adjustIntervalMs: 5000,
    shrinks: true,
    outstanding: () => grid.work,
    units: () => ({
      get loads () { return grid.loads },
      get starting () { return grid.starting },
      get leaving () { return grid.leaving },
      get avoided () { return grid.avoided },
      leave: async keep => { left.push(`all but ${keep}`) },
      retire: async ids => {
        const going = ids.filter(id => !grid.busy.includes(id))
        left.push(...going)
        grid.leaving.push(...going)
        grid.loads = grid.loads.filter(({ id }) => !going.includes(id))
        return going
      },
    }),
    clock,
    log: silent,
    ...more,
  })
  await keeper.start()
  t.teardown(() => keeper.letGo())
  return { keeper, clock, grid, puts, left, targets: () => puts.map(({ target }) => target) }
}

t.test('demand: units for what is outstanding, within minimum and maximum', async t => {
  t.same([unitsFor(0, 2, 1, 9), unitsFor(5, 2, 1, 9), unitsFor(50, 2, 1, 9), unitsFor(1, 2, 4, 9)], [1, 3, 9, 4])
})

interface Row { name: string, needs?: Partial<DemandNeeds>, units?: UnitLoad[], work: number, target: number }
const rows: Row[] = [
  { name: 'one unit per call, with prefetch one per two', needs: { prefetch: 1, maxUnits: 100 }, work: 50, target: 25 },
  { name: 'maxUnits is the most', needs: { maxUnits: 20 }, work: 50, target: 20 },
  { name: 'minUnits the least', needs: { minUnits: 30 }, work: 1, target: 30 },
  { name: 'units of several cores take as many calls', needs: { base: { sessionId: '7', service: 'Echo', priority: 2000, createdAt: '', coresPerUnit: 4, environment: {}, exclude: [], labels: {}, cancelGraceMs: 1 } }, work: 100, target: 25 },
  { name: 'maxConcurrentCalls counts instead of cores', needs: { maxConcurrentCalls: 2 }, units: [load('1-0', { cores: 8 })], work: 100, target: 50 },
  { name: 'dispatcherCapacityInGrowShrink counts instead of both', needs: { maxConcurrentCalls: 2, reckonedCalls: 5 }, work: 100, target: 20 },
  { name: 'cores of instances of different size are averaged', units: [load('1-0', { cores: 2 }), load('1-1', { cores: 5 })], work: 99, target: 33 },
  { name: 'instances that cannot be reached are asked for once more', units: [load('1-0', { isBlocked: true }), load('1-1', { isBlocked: true }), load('1-2')], work: 30, target: 32 },
  { name: 'whole nodes of unknown size are not guessed at', needs: { base: { sessionId: '7', service: 'Echo', priority: 2000, createdAt: '', coresPerUnit: 1, unitType: 'node', environment: {}, exclude: [], labels: {}, cancelGraceMs: 1 } }, work: 1000, target: 16 },
]
for (const { name, needs = {}, units = [], work, target } of rows) {
  t.test(`demand: growth: ${name}`, async t => {
    const { keeper, grid } = await bench(needs, units)
    grid.work = work
    keeper.look()
    t.equal(keeper.target, target)
  })
}

t.test('demand: growth does not wait for the next look, and an idle session gives up all but its minimum and what it keeps warm', async t => {
  for (const [needs, kept] of [[{}, 0], [{ minWarm: 2 }, 2], [{ minUnits: 3, minWarm: 2 }, 3], [{ minWarm: 9, maxUnits: 4 }, 4]] as const) {
    const { keeper, grid, clock, targets, left } = await bench(needs)
    await clock.advance(11_000)
    t.equal(targets().at(-1), kept, JSON.stringify(needs))
    t.same(left, 'maxUnits' in needs ? [] : [`all but ${kept}`])
    grid.work = kept + 2
    keeper.look()
    await settle()
    t.equal(targets().at(-1), 'maxUnits' in needs ? 4 : kept + 2)
  }
})

t.test('demand: while some work the others leave, 2, 4, 8 at a pass, and never more than the minimum leaves', async t => {
  const { grid, clock, puts, left, targets } = await bench({ minUnits: 3 }, loads(1, ...Array.from({ length: 19 }, () => 0)))
  grid.work = 1
  const passes: number[] = []
  for (let pass = 0; pass < 6; pass++) {
    const before = left.length
    await clock.advance(5000)
    passes.push(left.length - before)
  }
  t.same(passes, [2, 4, 8, 3, 0, 0])
  t.equal(targets().at(-1), 3)
  t.same(puts.at(-1)?.leaving, [...left], 'the plan is told which')
  t.notOk(left.includes('1-0'), 'the one that works stays')
})

t.test('demand: growth sets the pace of shrinking back; one that got a call meanwhile stays; -1 and automaticShrinkEnabled=false let nobody go', async t => {
  const { keeper, grid, clock, left } = await bench({}, loads(1, ...Array.from({ length: 29 }, () => 0)))
  grid.work = 1
  await clock.advance(10_000)
  t.equal(left.length, 2 + 4)
  grid.work = 40
  keeper.look()
  grid.work = 1
  grid.busy = grid.loads.map(({ id }) => id).slice(0, -1)
  await clock.advance(5000)
  t.equal(left.length, 7, 'two were to go, and one of them was busy by then')
  t.equal(keeper.target, grid.loads.length)
  for (const off of [{ adjustIntervalMs: -1 }, { shrinks: false }]) {
    const still = await bench(off, loads(1, 0, 0, 0))
    still.grid.work = 1
    await still.clock.advance(60_000)
    t.same(still.left, [])
  }
  const raised = await bench({ adjustIntervalMs: 1 }, loads(1, 0, 0))
  raised.grid.work = 1
  await raised.clock.advance(2999)
  t.same(raised.left, [])
  await raised.clock.advance(1)
  t.equal(raised.left.length, 2, 'a shorter interval counts as 3000 ms')
})

t.test('demand: what the grid could not give is asked for no longer once it is not needed', async t => {
  const { keeper, grid, clock } = await bench({}, loads(1, 1))
  grid.work = 50
  keeper.look()
  t.equal(keeper.target, 50)
  grid.work = 2
  await clock.advance(5000)
  t.equal(keeper.target, 2)
})

t.test('demand: nodes to be avoided and tasks that are let go of are on the board at once', async t => {
  const { keeper, grid, puts } = await bench()
  t.notMatch(puts[0], { avoid: [] })
  grid.avoided = ['n1']
  grid.leaving = ['1-1']
  keeper.wantsChanged()
  await settle()
  t.match(puts.at(-1), { avoid: ['n1'], leaving: ['1-1'] })
})

t.test('shrink: only when those that work can do it all, and more are idle than requests wait', async t => {
  const cases: Array<[inFlight: number[], outstanding: number, idle: number]> = [
    [[1, 1, 0, 0], 2, 2], // nothing waits
    [[1, 1, 0, 0], 3, 0], // more than two can do
    [[2, 0, 0, 0], 2, 0], // the same, although the instance has both
    [[1, 0], 1, 1],
    [[0, 0], 1, 0], // nobody works yet
    [[1, 1], 2, 0],
  ]
  for (const [inFlight, outstanding, idle] of cases) t.equal(idleUnits(loads(...inFlight), outstanding).length, idle, `${String(inFlight)}; ${outstanding}`)
  t.same([goingNow(99, 99, 1), goingNow(99, 99, 3), goingNow(5, 99, 3), goingNow(99, 1, 3), goingNow(99, -2, 1)], [2, 8, 5, 1, 0])
})

t.test('shrink: whole nodes first: those with the fewest busy instances, then with the fewest at all; of one node the blocked and the youngest', async t => {
  const at = (node: string, id: string, inFlight = 0, isBlocked = false): UnitLoad => load(id, { node, inFlight, isBlocked, capacity: 4 })
  const found = idleUnits([at('busy', '1-1', 1), at('busy', '1-2'), at('large', '1-3'), at('large', '1-4'), at('large', '1-5', 0, true), at('small', '2-1'), at('small', '2-2')], 1)
  t.same(found.map(({ id }) => id), ['2-2', '2-1', '1-5', '1-4', '1-3', '1-2'])
})
