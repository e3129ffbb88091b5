import { readFileSync } from 'node:fs'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { DurableSession, Session } from '../../client/index.ts'
import { Cluster } from '../e2e/cluster.ts'
import { proxyOf, scenario, skip } from './dotnet.ts'

t.setTimeout(300_000)

/** Contracts that are data contracts: .NET makes their proxies from ?wsdl alone. */
const IMPORTED = ['Calc', 'Orders', 'Shapes']

t.test('.NET over HTTP: proxies from ?wsdl, every binding, every shape of value', { skip }, async t => {
  const cluster = await Cluster.start(t, { services: 'test/interop/services', cores: 2 })
  for (const service of ['Calc', 'Orders', 'Shapes', 'Telemetry', 'Three', 'Depot']) {
    await t.test(service, async t => {
      await using session = await Session.create({ service, maxUnits: 1, head: cluster.head })
      const wsdl = `${session.endpoint}?wsdl`
      if (IMPORTED.includes(service)) {
        const committed = readFileSync(asset(`test/interop/dotnet/generated/${service}.cs`), 'utf8')
        t.equal(await proxyOf(wsdl, `Generated.${service}`), committed, 'the proxy that runs here is what ?wsdl gives')
      }
      for (const { check, ok, why } of await scenario(service.toLowerCase(), wsdl)) t.ok(ok, why === undefined ? check : `${check}: ${why}`)
    })
  }
  await t.test('stored requests: user data and client id as message headers, responses by IBrokerController', async t => {
    const session = await DurableSession.create({ service: 'Calc', head: cluster.head })
    for (const { check, ok, why } of await scenario('stored', `${session.endpoint}?wsdl`, 'dotnet')) t.ok(ok, why === undefined ? check : `${check}: ${why}`)
    await session.close()
  })
})
