import t from 'tap'
import { shortage } from '../../core/shortage.ts'
import { plan, unitCores, type PlanDemand, type PlanNode, type PlanTask, type Plan, type Snapshot } from '../../core/planner.ts'

const demand = (sessionId: string, more: Partial<PlanDemand> = {}): PlanDemand =>
  ({ sessionId, target: 4, min: 1, priority: 2000, createdAt: `2026-01-01T00:00:0${sessionId.length}.000Z`, coresPerUnit: 1, exclude: [], labels: {}, ...more })
const node = (id: string, cores: number, more: Partial<PlanNode> = {}): PlanNode =>
  ({ id, cores, labels: {}, groups: [], epoch: 1, alive: true, draining: false, ...more })
const task = (id: string, sessionId: string, node: string, more: Partial<PlanTask> = {}): PlanTask =>
  ({ id, sessionId, node, coreIds: [Number(id.split('-')[1])], state: 'Running', ...more })
const tasksOf = (sessionId: string, node: string, count: number, version = 1, firstCore = 0): PlanTask[] =>
  Array.from({ length: count }, (_, i) => task(`${version}-${firstCore + i}`, sessionId, node))
const run = (snapshot: Partial<Snapshot>): Plan => plan({ now: 0, version: 1, demands: [], nodes: [], tasks: [], ...snapshot })

/** `{a: {n1: 2}}`: two units of session a on n1. */
function spread (found: Plan): Record<string, Record<string, number>> {
  const counts: Record<string, Record<string, number>> = {}
  for (const { sessionId, node } of found.starts) (counts[sessionId] ??= {})[node] = (counts[sessionId]?.[node] ?? 0) + 1
  return counts
}
const canceled = (found: Plan): string[] => found.cancels.map(({ id, why }) => `${id} ${why}`).sort()

interface Row { name: string, snapshot: Partial<Snapshot>, starts?: Record<string, Record<string, number>>, cancels?: string[], finishes?: string[], dead?: string[] }
const rows: Row[] = [
  { name: 'nothing wanted, nothing done', snapshot: { nodes: [node('n1', 4)] } },
  { name: 'a session spreads: most free first', snapshot: { demands: [demand('a', { target: 8 })], nodes: [node('n1', 16), node('n2', 16), node('n3', 16), node('n4', 16)] }, starts: { a: { n1: 2, n2: 2, n3: 2, n4: 2 } } },
  { name: 'nodes of different size are filled evenly by what stays free', snapshot: { demands: [demand('a', { target: 6 })], nodes: [node('n1', 2), node('n2', 8)] }, starts: { a: { n2: 6 } } },
  { name: 'growth stops where the cores end', snapshot: { demands: [demand('a', { target: 9 })], nodes: [node('n1', 3)] }, starts: { a: { n1: 3 } } },
  { name: 'what runs counts towards the target', snapshot: { demands: [demand('a', { target: 3 })], nodes: [node('n1', 8)], tasks: tasksOf('a', 'n1', 2) }, starts: { a: { n1: 1 } } },
  { name: 'what is being canceled does not count, and its core is not free yet', snapshot: { demands: [demand('a', { target: 2 })], nodes: [node('n1', 2)], tasks: [task('1-0', 'a', 'n1', { state: 'Canceling' })] }, starts: { a: { n1: 1 } } },
  { name: 'higher priority goes first', snapshot: { demands: [demand('a', { priority: 1 }), demand('b', { priority: 2 })], nodes: [node('n1', 4)] }, starts: { b: { n1: 4 } } },
  { name: 'of equals the older goes first, once every minimum is met', snapshot: { demands: [demand('young', { target: 4, createdAt: '2026-01-02' }), demand('old', { target: 4, createdAt: '2026-01-01' })], nodes: [node('n1', 4)] }, starts: { old: { n1: 3 }, young: { n1: 1 } } },
  { name: 'a minimum is all or none', snapshot: { demands: [demand('a', { target: 12, min: 12, createdAt: '1' }), demand('b', { target: 12, min: 12, createdAt: '2' })], nodes: [node('n1', 20)] }, starts: { a: { n1: 12 } } },
  { name: 'a minimum above the target is the target', snapshot: { demands: [demand('a', { target: 2, min: 10 })], nodes: [node('n1', 4)] }, starts: { a: { n1: 2 } } },
  { name: 'only nodes with the labels', snapshot: { demands: [demand('a', { labels: { gpu: 'yes' } })], nodes: [node('n1', 8), node('n2', 2, { labels: { gpu: 'yes', disk: 'ssd' } })] }, starts: { a: { n2: 2 } } },
  { name: 'only nodes of the group', snapshot: { demands: [demand('a', { groups: ['night'] })], nodes: [node('n1', 8), node('n2', 2, { groups: ['day', 'night'] })] }, starts: { a: { n2: 2 } } },
  { name: 'not on excluded nodes; what runs there is canceled', snapshot: { demands: [demand('a', { target: 2, exclude: ['n1'] })], nodes: [node('n1', 8), node('n2', 2)], tasks: tasksOf('a', 'n1', 1) }, starts: { a: { n2: 2 } }, cancels: ['1-0 unfit'] },
  { name: 'a node must be in all of the groups', snapshot: { demands: [demand('a', { groups: ['night', 'gpu'] })], nodes: [node('n1', 8, { groups: ['night'] }), node('n2', 1, { groups: ['gpu', 'night'] })] }, starts: { a: { n2: 1 } } },
  { name: 'nothing starts where it is avoided, and what runs there goes on', snapshot: { demands: [demand('a', { target: 3, avoid: ['n1'] })], nodes: [node('n1', 8), node('n2', 1)], tasks: tasksOf('a', 'n1', 1) }, starts: { a: { n2: 1 } } },
  { name: 'a draining node takes nothing new, and what runs there finishes and is replaced', snapshot: { demands: [demand('a', { target: 2 })], nodes: [node('n1', 8, { draining: true }), node('n2', 4)], tasks: tasksOf('a', 'n1', 1) }, starts: { a: { n2: 2 } }, finishes: ['1-0 drained'] },
  { name: 'a host that only starts on a draining node is canceled', snapshot: { demands: [demand('a', { target: 1 })], nodes: [node('n1', 8, { draining: true })], tasks: [task('1-0', 'a', 'n1', { state: 'Dispatching' })] }, cancels: ['1-0 drained'] },
  { name: 'a node whose manager is going is left to it', snapshot: { demands: [demand('a', { target: 1 })], nodes: [node('n1', 8, { draining: true, leaving: true })], tasks: tasksOf('a', 'n1', 1) } },
  { name: 'what finishes is canceled once nobody wants it, or its session lets go of it', snapshot: { demands: [demand('a', { target: 1, leaving: ['1-1'] })], nodes: [node('n1', 1)], tasks: [task('1-0', 'gone', 'n1', { state: 'Finishing' }), task('1-1', 'a', 'n1', { state: 'Finishing' })] }, cancels: ['1-0 demandGone', '1-1 letGo'] },
  { name: 'tasks that their session has let go of are canceled, not the youngest, and count no longer', snapshot: { demands: [demand('a', { target: 2, leaving: ['1-0', '9-9'] })], nodes: [node('n1', 4)], tasks: tasksOf('a', 'n1', 3) }, cancels: ['1-0 letGo'] },
  { name: 'a unit of a node is the whole node, and none that is partly taken', snapshot: { demands: [demand('a', { target: 3, unitType: 'node' }), demand('bb', { target: 1 })], nodes: [node('n1', 8), node('n2', 2), node('n3', 4)], tasks: [task('1-0', 'bb', 'n1')] }, starts: { a: { n2: 1, n3: 1 } } },
  { name: 'a unit of a socket is a socket\'s share of the node\'s cores', snapshot: { demands: [demand('a', { target: 9, unitType: 'socket' })], nodes: [node('n1', 8, { sockets: 2 }), node('n2', 3, { sockets: 2 }), node('n3', 4)] }, starts: { a: { n1: 2, n2: 3, n3: 1 } } },
  { name: 'who may not be preempted is no victim', snapshot: { demands: [demand('low', { priority: 1, target: 4, canPreempt: false }), demand('high', { priority: 9, target: 2, min: 2 })], nodes: [node('n1', 4)], tasks: tasksOf('low', 'n1', 4) } },
  { name: 'nor among equals', snapshot: { demands: [demand('a', { target: 4, canPreempt: false }), demand('bb')], nodes: [node('n1', 4)], tasks: tasksOf('a', 'n1', 4) } },
  { name: 'who grows by preemption takes what lower ones have beyond their minimum', snapshot: { demands: [demand('low', { priority: 1, target: 4, min: 2 }), demand('high', { priority: 9, target: 4, growsByPreemption: true })], nodes: [node('n1', 5)], tasks: [...tasksOf('low', 'n1', 4), task('1-4', 'high', 'n1')] }, cancels: ['1-2 preempted', '1-3 preempted'] },
  { name: 'and nothing of equals', snapshot: { demands: [demand('a', { target: 4 }), demand('high', { target: 4, growsByPreemption: true })], nodes: [node('n1', 5)], tasks: [...tasksOf('a', 'n1', 4), task('1-4', 'high', 'n1')] } },
  { name: 'growth waits for what is being freed before it takes more', snapshot: { demands: [demand('low', { priority: 1, target: 4 }), demand('high', { priority: 9, target: 3, growsByPreemption: true })], nodes: [node('n1', 5)], tasks: [...tasksOf('low', 'n1', 2), task('1-2', 'low', 'n1', { state: 'Canceling' }), task('1-3', 'low', 'n1', { state: 'Canceling' }), task('1-4', 'high', 'n1')] } },
  { name: 'a unit of several cores stays on one node', snapshot: { demands: [demand('a', { target: 5, coresPerUnit: 4 }), demand('bb', { target: 3 })], nodes: [node('n1', 8), node('n2', 8), node('n3', 4)], tasks: tasksOf('bb', 'n3', 3) }, starts: { a: { n1: 2, n2: 2 } } },
  { name: 'too much is canceled, youngest first', snapshot: { demands: [demand('a', { target: 1 })], nodes: [node('n1', 8)], tasks: [task('2-1', 'a', 'n1'), task('10-0', 'a', 'n1'), task('2-3', 'a', 'n1')] }, cancels: ['10-0 surplus', '2-3 surplus'] },
  { name: 'target 0 frees all', snapshot: { demands: [demand('a', { target: 0 })], nodes: [node('n1', 8)], tasks: tasksOf('a', 'n1', 1) }, cancels: ['1-0 surplus'] },
  { name: 'tasks without a demand are canceled, once', snapshot: { nodes: [node('n1', 8)], tasks: [task('1-0', 'gone', 'n1'), task('1-1', 'gone', 'n1', { state: 'Canceling' })] }, cancels: ['1-0 demandGone'] },
  { name: 'a dead node is told, its tasks do not count, and they run elsewhere', snapshot: { demands: [demand('a', { target: 2 })], nodes: [node('n1', 8, { alive: false, epoch: 7 }), node('n2', 4)], tasks: tasksOf('a', 'n1', 2) }, starts: { a: { n2: 2 } }, dead: ['n1 7'] },
  { name: 'victims: lower priority, youngest first, only as many as the minimum needs', snapshot: { demands: [demand('low', { priority: 1, target: 20 }), demand('high', { priority: 9, target: 10, min: 6 })], nodes: [node('n1', 20)], tasks: tasksOf('low', 'n1', 20) }, cancels: ['1-14 preempted', '1-15 preempted', '1-16 preempted', '1-17 preempted', '1-18 preempted', '1-19 preempted'] },
  { name: 'victims: the lowest priority before the youngest', snapshot: { demands: [demand('lowest', { priority: 1, target: 1 }), demand('low', { priority: 2, target: 1 }), demand('high', { priority: 9, target: 1 })], nodes: [node('n1', 2)], tasks: [task('1-0', 'lowest', 'n1'), task('5-1', 'low', 'n1')] }, cancels: ['1-0 preempted'] },
  { name: 'no victims for growth', snapshot: { demands: [demand('low', { priority: 1, target: 3 }), demand('high', { priority: 9, target: 4 })], nodes: [node('n1', 4)], tasks: [...tasksOf('low', 'n1', 3), task('1-3', 'high', 'n1')] } },
  { name: 'an equal that lacks its minimum gets what another has beyond its own, youngest first', snapshot: { demands: [demand('a', { target: 4 }), demand('bb')], nodes: [node('n1', 4)], tasks: tasksOf('a', 'n1', 4) }, cancels: ['1-3 preempted'] },
  { name: 'no victims among equals that have just their minimum', snapshot: { demands: [demand('a', { target: 4, min: 4 }), demand('bb')], nodes: [node('n1', 4)], tasks: tasksOf('a', 'n1', 4) } },
  { name: 'no victims among equals for growth', snapshot: { demands: [demand('a', { target: 3 }), demand('bb', { target: 4 })], nodes: [node('n1', 4)], tasks: [...tasksOf('a', 'n1', 3), task('1-3', 'bb', 'n1')] } },
  { name: 'no victims when they would not be enough', snapshot: { demands: [demand('low', { priority: 1, target: 2 }), demand('high', { priority: 9, target: 4, min: 4 })], nodes: [node('n1', 2)], tasks: tasksOf('low', 'n1', 2) } },
  { name: 'victims: cores being freed are counted, so none is taken twice', snapshot: { demands: [demand('low', { priority: 1, target: 4 }), demand('high', { priority: 9, target: 2, min: 2 })], nodes: [node('n1', 4)], tasks: [...tasksOf('low', 'n1', 2), task('2-2', 'low', 'n1', { state: 'Canceling' }), task('2-3', 'low', 'n1', { state: 'Canceling' })] } },
  { name: 'cores that a higher session waits for are kept from the lower one whose task had them', snapshot: { demands: [demand('low', { priority: 1, target: 4 }), demand('high', { priority: 9, target: 2, min: 2 })], nodes: [node('n1', 4)], tasks: [...tasksOf('low', 'n1', 2), task('2-3', 'low', 'n1', { state: 'Canceling' })] } },
  { name: 'no victim on a node where it does not make a whole unit', snapshot: { demands: [demand('low', { priority: 1, target: 5 }), demand('high', { priority: 9, target: 1, coresPerUnit: 4 }), demand('peer', { priority: 9, target: 1 })], nodes: [node('n1', 4), node('n2', 4)], tasks: [...tasksOf('low', 'n1', 2, 1), task('1-9', 'low', 'n2', { coreIds: [0, 1] }), task('1-8', 'peer', 'n2', { coreIds: [2, 3] }), task('0-1', 'keep', 'n1', { coreIds: [2, 3], state: 'Canceling' })] }, cancels: ['1-0 preempted', '1-1 preempted'] },
  { name: 'a node where tasks of the session failed is left alone until its time', snapshot: { now: 100, demands: [demand('a', { target: 2, notBefore: { n1: 101, n2: 100 } })], nodes: [node('n1', 8), node('n2', 1)] }, starts: { a: { n2: 1 } } },
]
for (const { name, snapshot, starts = {}, cancels = [], finishes = [], dead = [] } of rows) {
  t.test(`planner: ${name}`, async t => {
    const found = run(snapshot)
    t.same(spread(found), starts, 'starts')
    t.same(canceled(found), [...cancels].sort(), 'cancels')
    t.same(found.finishes.map(({ id, why }) => `${id} ${why}`), finishes, 'finishes')
    t.same(found.deadNodes.map(({ node, epoch }) => `${node} ${epoch}`), dead, 'dead nodes')
  })
}

t.test('planner: every task has core indices of its own, the lowest that are free', async t => {
  const found = run({ demands: [demand('a', { target: 3, coresPerUnit: 2 })], nodes: [node('n1', 8)], tasks: [task('1-1', 'a', 'n1'), task('1-2', 'b', 'n1', { state: 'Canceling' })] })
  t.same(found.starts.map(({ coreIds }) => coreIds), [[0, 3], [4, 5]])
})

t.test('planner: on any grid nothing is overbooked or beyond its target, minima are whole, nobody is canceled without a reason, least of all who may not be preempted', async t => {
  for (let seed = 1; seed <= 1500; seed++) {
    const random = mulberry(seed)
    const upTo = (n: number): number => Math.floor(random() * (n + 1))
    const nodes = Array.from({ length: 1 + upTo(5) }, (_, i) => node(`n${i}`, 1 + upTo(8), { alive: random() > 0.1, draining: random() < 0.1, sockets: 1 + upTo(1), groups: random() < 0.5 ? ['g'] : [] }))
    const demands = Array.from({ length: upTo(6) }, (_, i) => demand(`s${i}`, {
      target: upTo(10),
      min: upTo(6),
      priority: upTo(3),
      coresPerUnit: 1 + upTo(2),
      exclude: random() < 0.2 ? ['n0'] : [],
      groups: random() < 0.2 ? ['g'] : [],
      unitType: random() < 0.2 ? 'node' : random() < 0.2 ? 'socket' : 'core',
      canPreempt: random() > 0.3,
      growsByPreemption: random() < 0.5
    }))
    let tasks: PlanTask[] = []
    let demanded: PlanDemand[] = demands
    for (let round = 1; round <= 4; round++) {
      const snapshot = { now: 0, version: round, demands: demanded, nodes, tasks }
      const found = plan(snapshot)
      check(snapshot, found, complaint => { t.fail(`seed ${seed}, round ${round}: ${complaint}`) })
      const gone = new Set(found.deadNodes.map(({ node }) => node))
      const canceled = new Set(found.cancels.map(({ id }) => id))
      const finishing = new Set(found.finishes.map(({ id }) => id))
      tasks = tasks.filter(task => !gone.has(task.node) && !(task.state === 'Canceling' && random() < 0.6))
        .map(task => canceled.has(task.id) ? { ...task, state: 'Canceling' } : finishing.has(task.id) ? { ...task, state: 'Finishing' } : task)
        .concat(found.starts.map((start, i) => ({ id: `${round}-${i}`, ...start, state: random() < 0.5 ? 'Dispatching' : 'Running' })))
      const letGo = tasks.filter(() => random() < 0.1).map(({ id }) => id)
      demanded = demands.filter(() => random() > 0.1).map(demand => ({ ...demand, leaving: letGo, ...(random() < 0.5 ? { target: upTo(10) } : {}) }))
    }
  }
  t.pass('1500 grids, four rounds each')
})

t.test('planner: a higher session gets its minimum in the end, although its victims end one by one', async t => {
  const demands = [demand('low', { priority: 1, target: 4 }), demand('high', { priority: 9, target: 3, min: 3 })]
  let tasks = tasksOf('low', 'n1', 4)
  let highRuns = 0
  for (let round = 2; round < 10; round++) {
    const found = run({ version: round, demands, nodes: [node('n1', 4)], tasks })
    const canceled = new Set(found.cancels.map(({ id }) => id))
    tasks = tasks.map(task => canceled.has(task.id) ? { ...task, state: 'Canceling' } : task)
    tasks.push(...found.starts.map((start, i) => ({ id: `${round}-${i}`, ...start, state: 'Running' })))
    const first = tasks.findIndex(({ state }) => state === 'Canceling')
    if (first >= 0) tasks.splice(first, 1)
    highRuns = tasks.filter(({ sessionId, state }) => sessionId === 'high' && state === 'Running').length
  }
  t.equal(highRuns, 3)
  t.equal(tasks.filter(({ sessionId }) => sessionId === 'low').length, 1, 'and the lower one keeps the rest')
})

function check ({ demands, nodes, tasks }: Snapshot, found: Plan, fail: (complaint: string) => void): void {
  const alive = new Map(nodes.filter(({ alive }) => alive).map(node => [node.id, node]))
  const taken = new Map<string, Set<number>>()
  const canceledIds = new Set(found.cancels.map(({ id }) => id))
  const finishedIds = new Set(found.finishes.map(({ id }) => id))
  for (const { node, coreIds } of [...tasks, ...found.starts]) {
    const home = alive.get(node)
    if (home === undefined) continue
    const here = taken.get(node) ?? new Set()
    taken.set(node, here)
    for (const id of coreIds) {
      if (here.has(id) || id < 0 || id >= home.cores) fail(`core ${id} of ${node} is overbooked`)
      here.add(id)
    }
  }
  for (const start of found.starts) {
    const home = alive.get(start.node)
    const wish = demands.find(({ sessionId }) => sessionId === start.sessionId)
    if (home === undefined || home.draining) fail(`${start.node} takes no tasks`)
    if (wish === undefined || wish.exclude.includes(start.node) || (wish.groups?.length === 1 && home?.groups.includes('g') !== true)) fail(`${start.sessionId} may not run on ${start.node}`)
    if (wish === undefined || home === undefined || start.coreIds.length !== unitCores(wish, home)) fail('a unit has other cores than asked for')
  }
  for (const wish of demands) {
    const running = tasks.filter(({ id, sessionId, node, state }) => sessionId === wish.sessionId && alive.has(node) && state !== 'Canceling' && state !== 'Finishing' && !canceledIds.has(id) && !finishedIds.has(id)).length
    const started = found.starts.filter(({ sessionId }) => sessionId === wish.sessionId).length
    if (running + started > wish.target) fail(`${wish.sessionId} has ${running + started}, its target is ${wish.target}`)
    if (started > 0 && running + started < Math.min(wish.min, wish.target)) fail(`${wish.sessionId} got a part of its minimum`)
  }
  for (const { id, sessionId, why } of found.cancels) {
    const victim = tasks.find(task => task.id === id)
    if (victim === undefined || victim.state === 'Canceling' || !alive.has(victim.node)) fail(`${id} cannot be canceled`)
    const priority = demands.find(demand => demand.sessionId === sessionId)?.priority
    if ((why === 'demandGone') !== (priority === undefined)) fail(`${id}: ${why}`)
    const isFor = (other: PlanDemand): boolean => other.sessionId !== sessionId &&
      ((other.min > 0 && other.priority >= (priority ?? 0)) || (other.growsByPreemption === true && other.priority > (priority ?? 0)))
    if (why === 'preempted' && !demands.some(isFor)) fail(`${id} was preempted for nobody`)
    if (why === 'preempted' && demands.find(demand => demand.sessionId === sessionId)?.canPreempt === false) fail(`${id} was preempted and may not be`)
  }
  for (const { id } of found.finishes) {
    const task = tasks.find(task => task.id === id)
    if (task?.state !== 'Running' || alive.get(task.node)?.draining !== true || canceledIds.has(id)) fail(`${id} need not finish`)
  }
}

/** A small seeded generator: the same grids in every run. */
function mulberry (seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6D2B79F5) | 0
    let x = Math.imul(state ^ (state >>> 15), 1 | state)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296
  }
}

t.test('shortage: what a session lacks and the grid cannot give is said with its numbers; what comes at once is not', async t => {
  const said = (snapshot: Partial<Snapshot>, offline: string[] = [], sessionId = 'a'): string | undefined => shortage({ now: 100, version: 1, demands: [], nodes: [], tasks: [], ...snapshot }, offline, sessionId)?.why
  const rows: Array<[snapshot: Partial<Snapshot>, why: string | undefined, offline?: string[]]> = [
    [{ demands: [demand('a')] }, '1 instance: the grid has no node (soa node starts one)'],
    [{ demands: [demand('a')] }, '1 instance: no node may be used: n1 is offline', ['n1']],
    [{ demands: [demand('a')], nodes: [node('n1', 4)] }, undefined],
    [{ demands: [], nodes: [] }, undefined],
    [{ demands: [demand('a', { target: 0, min: 0 })] }, undefined],
    [{ demands: [demand('a', { target: 8, min: 8 })], nodes: [node('n1', 4), node('n2', 2)] }, '8 instances: the 2 nodes that may be used have room for 6'],
    [{ demands: [demand('a', { target: 8, min: 8 })], nodes: [node('n2', 7)], tasks: tasksOf('a', 'n2', 3) }, '8 instances, 3 there: the node that may be used has room for 7'],
    [{ demands: [demand('a', { target: 2, min: 2, coresPerUnit: 4 })], nodes: [node('n1', 7), node('n2', 3)] }, '2 instances of 4 cores: the node that may be used (n2 has 3 cores, a unit needs 4) has room for 1'],
    [{ demands: [demand('a', { target: 2, min: 2, unitType: 'node' })], nodes: [node('n1', 7)] }, '2 instances of a node: the node that may be used has room for 1'],
    [{
      demands: [demand('a', { groups: ['gpu'], labels: { zone: 'b' }, exclude: ['n4'], avoid: ['n5'], notBefore: { n6: 101, n1: 99 } })],
      nodes: [
        node('n1', 4, { draining: true }), node('n2', 4), node('n3', 4, { groups: ['gpu'], labels: { zone: 'a' } }), ...['n4', 'n5', 'n6'].map(id => node(id, 4, { groups: ['gpu'], labels: { zone: 'b' } })), node('n7', 4, { alive: false })
      ]
    }, '1 instance: no node may be used: n1 is drained, n2 is not in group gpu, n3 has no label zone=b, n4 is excluded by the session, n5 could not load the service lately, and 2 more'],
    [{ demands: [demand('a', { avoid: ['n5'], notBefore: { n6: 101 } })], nodes: [node('n5', 4), node('n6', 4), node('n7', 4, { alive: false }), node('n8', 4, { draining: true, leaving: true })] },
      '1 instance: no node may be used: n5 could not load the service lately, n6 had a task of the session that failed, and pauses, n7 has not been heard of, n8 is leaving'],
    [{ demands: [demand('a', { target: 3, min: 3, createdAt: '2' }), demand('b', { target: 4, min: 4, createdAt: '1' })], nodes: [node('n1', 6)], tasks: tasksOf('b', 'n1', 4) }, '3 instances: 2 fit in what is free on the node that may be used; 4 of 6 cores are taken'],
    [{ demands: [demand('a', { createdAt: '2' }), demand('b', { target: 2, min: 2, createdAt: '1' })], nodes: [node('n1', 3)], tasks: [task('1-0', 'b', 'n1'), task('1-1', 'b', 'n1'), task('1-2', 'old', 'n1', { state: 'Canceling' })] }, '1 instance: none fits in what is free on the node that may be used; 3 of 3 cores are taken (1 being freed)'],
    [{ demands: [demand('a', { target: 1, leaving: ['1-0'] })], nodes: [node('n1', 1)], tasks: tasksOf('a', 'n1', 1) }, '1 instance: none fits in what is free on the node that may be used; 1 of 1 cores are taken (1 being freed)'],
    [{ demands: [demand('a', { target: 4, min: 2 })], nodes: [node('n1', 2)], tasks: tasksOf('a', 'n1', 2) }, undefined]
  ]
  for (const [snapshot, why, offline] of rows) t.equal(said(snapshot, offline), why, why ?? 'nothing is lacking')
  t.match(shortage({ now: 0, version: 1, demands: [demand('a', { target: 8, min: 8 })], nodes: [node('n1', 6), node('n2', 4, { draining: true })], tasks: tasksOf('b', 'n1', 2) }, ['n3'], 'a'), {
    units: 8, has: 0, nodes: 1, room: 6, free: 4, cores: 6, busyCores: 2, freeingCores: 0, unusable: [{ node: 'n2', why: 'is drained' }, { node: 'n3', why: 'is offline' }]
  })
})
