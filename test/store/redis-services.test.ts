import t from 'tap'
import { silent } from '../../core/log.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { compareVersions, isVersion, RedisServiceRegistry } from '../../store/redis-services.ts'
import type { RegisteredService } from '../../store/service-registry.ts'
import { needsRedis, startRedis } from '../redis-server.ts'
import { fault } from './store-promises.ts'

const service = (name: string, version?: string): RegisteredService =>
  ({ name, version, config: '<configuration/>', file: `/services/${name}.config`, documents: { '/a.wsdl': '<definitions/>' }, addedAt: '2026-01-01T00:00:00.000Z' })

t.test('services', { ...needsRedis }, async t => {
  const server = await startRedis(t, { appendfsync: 'no' })
  const redis = await openRedis(server.url, { log: silent })
  t.teardown(() => closeRedis(redis))
  let fresh = 0
  const registry = (): RedisServiceRegistry => new RedisServiceRegistry({ redis, prefix: `s${++fresh}`, log: silent })

  t.test('no version asked: the unversioned one, else the highest by number', async t => {
    const services = registry()
    for (const version of ['1.9', '1.10', '1.10.0', '0.0', 'beta']) await services.put(service('Echo', version))
    t.equal((await services.get('Echo')).version, '1.10.0')
    await services.put(service('Echo'))
    t.equal((await services.get('Echo')).version, undefined)
    t.same(JSON.parse(JSON.stringify(await services.get('Echo', '1.9'))), JSON.parse(JSON.stringify(service('Echo', '1.9'))))
    t.equal((await services.get('Echo', 'BETA')).version, 'beta')
  })

  t.test('what is not there is refused by its own name', async t => {
    const services = registry()
    await t.rejects(services.get('Echo'), fault('Service_NotFound', ['Echo']))
    await t.rejects(services.get('Echo', '1.0'), fault('Service_NotFound', ['Echo']))
    await services.put(service('Echo', '2.0'))
    await services.put(service('EchoTwo'))
    await t.rejects(services.get('Echo', '1.0'), fault('ServiceVersion_NotFound', ['Echo', '1.0']))
    await t.rejects(services.get('Ech'), fault('Service_NotFound'))
    await t.rejects(services.get('echoo'), { message: 'no service echoo is registered; did you mean Echo or EchoTwo?', context: ['echoo'] } as object as Error)
    await t.rejects(services.get('Echo', '1.0'), { message: /^service Echo has no version 1\.0; it has 2\.0$/ } as object as Error)
    await services.put(service('Odd', '0.0'))
    await t.rejects(services.get('Odd'), fault('Service_NotFound'), '0.0 is no version')
  })

  t.test('names are one whatever their case, and the last registration stands', async t => {
    const services = registry()
    await services.put(service('CcpEchoSvc'))
    await services.put({ ...service('ccpechosvc'), config: '<second/>' })
    t.match(await services.get('CCPECHOSVC'), { name: 'ccpechosvc', config: '<second/>' })
    t.equal((await services.list()).length, 1)
  })

  t.test('a list is in order of name and version', async t => {
    const services = registry()
    for (const [name, version] of [['b', '1.10'], ['b', '1.9'], ['B', undefined], ['a', undefined]] as const) await services.put(service(name, version))
    t.same((await services.list()).map(s => [s.name, s.version]), [['a', undefined], ['B', undefined], ['b', '1.9'], ['b', '1.10']])
  })

  t.test('a name that would not be found again is refused', async t => {
    for (const bad of [service(''), service('a/b'), service('a', '')]) await t.rejects(registry().put(bad), fault('InvalidArgument'))
  })
})

t.test('versions compare as .NET does', async t => {
  const inOrder = ['beta', '1.0', '1.0.0', '1.0.0.1', '1.2', '1.10', '2.0', '10.0']
  t.same([...inOrder].reverse().sort(compareVersions), inOrder)
  for (const [text, is] of [['1', false], ['1.0', true], ['0.0', false], ['0.1', true], ['1.2.3.4', true], ['1.2.3.4.5', false], ['1.x', false], ['', false]] as const) t.equal(isVersion(text), is, text)
})
