import t from 'tap'
import { isSoaError } from '../../core/errors.ts'
import type { NodeView } from '../../store/redis-placement.ts'
import { wishesOf } from '../../broker/wishes.ts'
import { readWishes, refuseUnlessPossible, type AskedWishes } from '../../broker/head/session-wishes.ts'
import { sessionRequest } from '../../broker/head/soap/start-info.ts'

const node = (id: string, more: Partial<NodeView> = {}): NodeView => ({ id, machine: id, pid: 1, state: 'Online', cores: 4, busy: 0, tasks: 0, heartbeatAgeMs: 0, groups: [], labels: {}, ...more })
const GRID = [node('n1', { groups: ['night'], labels: { gpu: 'no' } }), node('n2', { groups: ['night', 'gpu'], labels: { gpu: 'yes', zone: 'b' }, cores: 8, state: 'Offline' }), node('n3', { labels: { zone: 'a' }, state: 'Draining' })]

/** `argument: why` of the refusal; undefined: none. */
function refusal (run: () => void): string | undefined {
  try { run() } catch (error) { if (isSoaError(error, 'InvalidArgument')) return error.context.join(': '); throw error }
  return undefined
}
const onGrid = (asked: AskedWishes, grid: readonly NodeView[] = GRID): string | undefined => refusal(() => refuseUnlessPossible(readWishes(asked), grid))

t.test('wishes: what no node can give is refused at once, with what there is', async t => {
  const cases: Array<[AskedWishes, string | undefined]> = [
    [{}, undefined],
    [{ group: 'gpu' }, undefined],
    [{ group: 'night, gpu' }, undefined],
    [{ group: 'gpuu' }, 'group: no node is in the group "gpuu"; known groups: gpu, night'],
    [{ labels: { gpu: 'yes', zone: 'b' } }, undefined],
    [{ labels: { gpu: 'maybe' } }, 'labels: no node has "gpu=maybe"; known values of "gpu": no, yes'],
    [{ labels: { fpga: 'yes' } }, 'labels: no node has "fpga=yes"; known values of "fpga": none'],
    [{ labels: { gpu: 'yes', zone: 'a' } }, 'labels: no node has all of gpu=yes, zone=a'],
    [{ group: 'night', labels: { zone: 'a' } }, 'labels: no node of night has "zone=a"; known values of "zone": b'],
    [{ group: 'gpu', exclude: ['n2', 'n9'] }, 'exclude: every node that fits is excluded: n2'],
    [{ exclude: ['n2', 'n9'] }, undefined],
    [{ coresPerUnit: 8 }, undefined],
    [{ coresPerUnit: 9 }, 'coresPerUnit: 9 cores are more than any node that fits has; the largest has 8'],
    [{ exclude: ['n2'], coresPerUnit: 5 }, 'coresPerUnit: 5 cores are more than any node that fits has; the largest has 4'],
    [{ unitType: 'node' }, undefined],
  ]
  for (const [asked, says] of cases) t.equal(onGrid(asked), says, JSON.stringify(asked))
  t.equal(onGrid({ group: 'gpu' }, [node('n1')]), 'group: no node is in the group "gpu"; known groups: none')
  t.equal(onGrid({ group: 'gpu,night' }, [node('n1', { groups: ['gpu'] }), node('n2', { groups: ['night'] })]), 'group: no node is in all of the groups gpu, night')
})

t.test('wishes: a grid without any node refuses nothing: they may come', async t => {
  t.equal(onGrid({ group: 'gpu', labels: { a: 'b' }, coresPerUnit: 64 }, []), undefined)
})

t.test('wishes: what cannot be meant is refused with field, limit and value', async t => {
  const cases: Array<[AskedWishes, RegExp]> = [
    [{ coresPerUnit: 0 }, /^coresPerUnit: a whole number from 1 to 4096, not 0$/],
    [{ coresPerUnit: 4097 }, /not 4097/],
    [{ coresPerUnit: 1.5 }, /not 1.5/],
    [{ coresPerUnit: 2, unitType: 'node' }, /^coresPerUnit: a unit of type node has the cores that its node has/],
    [{ unitType: 'gpu' as 'core' }, /^unitType: core, socket, node, not "gpu"$/],
    [{ group: 'a,,b' }, /^group: names of 1 to 255 characters, not ""$/],
    [{ exclude: ['x'.repeat(256)] }, /^exclude: names of 1 to 255 characters/],
    [{ exclude: Array.from({ length: 1001 }, (_, i) => `n${i}`) }, /^exclude: 1001 names, the limit is 1000$/],
  ]
  for (const [asked, says] of cases) t.match(refusal(() => readWishes(asked)), says)
})

t.test('wishes: they reach the demand, and a record without any asks for nothing', async t => {
  t.same(wishesOf({}), { labels: {}, exclude: [], coresPerUnit: 1 })
  const asked = { group: 'a, b,a', labels: { gpu: 'yes' }, exclude: ['n2', 'n1'], unitType: 'node', canPreempt: false } as const
  t.same(wishesOf(readWishes(asked)), { groups: ['a', 'b'], labels: { gpu: 'yes' }, exclude: ['n1', 'n2'], coresPerUnit: 1, unitType: 'node', canPreempt: false })
})

t.test('wishes: HPC Pack\'s start info says them too', async t => {
  const of = (members: object): object => sessionRequest({ ServiceName: 'Echo', ...members } as never, false, false)
  t.match(of({ NodeGroupsStr: 'a,b', ResourceUnitType: 2, CanPreempt: false, DispatcherCapacityInGrowShrink: 3 }),
    { request: { group: 'a,b', unitType: 'node', canPreempt: false, settings: { dispatcherCapacityInGrowShrink: 3 } }, idle: [] })
  t.match(of({ NodeGroupsStr: '' }), { request: { group: undefined, unitType: undefined, canPreempt: undefined } })
  t.equal(refusal(() => of({ ResourceUnitType: 3 })), 'info.ResourceUnitType: 0 (core), 1 (socket) or 2 (node), not 3')
})
