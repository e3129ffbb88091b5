import { availableParallelism } from 'node:os'
import t from 'tap'
import { hpcControllerPort, hpcPort } from '../../node-manager/port.ts'
import { coresOf, labelsOf, listOf, nodeIdOf } from '../../node-manager/resources.ts'

t.test('resources: cores are as told, else what the machine has', async t => {
  t.equal(coresOf(64), 64, 'also more than there are')
  t.equal(coresOf(0), availableParallelism())
})

t.test('resources: a name is as told, else the machine\'s; what could not be part of a key is refused', async t => {
  t.equal(nodeIdOf('n-1.grid_a'), 'n-1.grid_a')
  t.match(nodeIdOf(''), /^[A-Za-z0-9._-]{1,64}$/)
  for (const bad of ['a b', '{a}', 'a:b', 'x'.repeat(65)]) t.throws(() => nodeIdOf(bad), /nodeId/)
})

t.test('resources: labels and groups come as lists', async t => {
  t.same(labelsOf('gpu=yes, zone = b,fast'), { gpu: 'yes', zone: 'b', fast: 'true' })
  t.same(labelsOf(''), {})
  t.same(listOf(' a, ,b '), ['a', 'b'])
})

t.test('port: HPC Pack\'s by the first core', async t => {
  t.same([0, 7, 99, 100, 101].map(hpcPort), [9100, 9107, 9199, 9300, 9302])
  t.same([0, 7, 99, 100, 101].map(hpcControllerPort), [9200, 9207, 9299, 9301, 9303])
})
