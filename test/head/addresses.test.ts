import t from 'tap'
import { Client } from 'undici'
import type { RunningHead } from '../../broker/head/main.ts'
import { call, ground } from './head-rig.ts'
import { needsRedis } from '../redis-server.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { vectors } from '../wsdl/cases.ts'

const PROXY = { host: 'inner', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'grid.example:8443', 'x-forwarded-prefix': '/soa' }

/** Addresses that a caller is told on one connection, in this order: what the head itself answers, what the worker does, and each of them again. */
async function told (head: RunningHead, sessionId: string, headers: Record<string, string>): Promise<Record<string, string[]>> {
  const asks = { rest: `/api/v1/sessions/${sessionId}`, launcher: '/BrokerLauncher?wsdl', session: `/${sessionId}/Http?wsdl`, controller: `/${sessionId}/http/Controller?singlewsdl`, page: `/${sessionId}/Http` }
  const found: Record<string, string[]> = {}
  // The first request decides whose connection it is; all others on it are handed on, there or back.
  for (const first of ['rest', 'session'] as const) {
    const client = new Client(head.http, { pipelining: 1 })
    for (const name of [first, ...Object.keys(asks) as Array<keyof typeof asks>]) {
      const { statusCode, body } = await client.request({ method: 'GET', path: asks[name], headers })
      const text = await body.text()
      const addresses = [...text.matchAll(/(?:"http":"|location="|schemaLocation="|href=")(https?:\/\/[^"?]*)/g)].map(([, url]) => url as string)
      found[name] = [...new Set([...found[name] ?? [], ...addresses, ...statusCode === 200 ? [] : [`${statusCode}: ${text}`]])]
    }
    await client.close()
  }
  return found
}
const expected = (base: string, id: string): object => ({ rest: [`${base}/${id}/Http`], launcher: [`${base}/BrokerLauncher`], session: [`${base}/${id}/Http`], controller: [`${base}/${id}/http/Controller`], page: [`${base}/${id}/Http`] })

t.setTimeout(120_000)

t.test('addresses: every way through head and worker tells a caller the address that it used', needsRedis, async t => {
  const place = await ground(t)
  writeFileSync(join(place.dir, 'services', 'Orders.config'), `<configuration><microsoft.Hpc.Session.ServiceRegistration><service wsdl="${join(vectors, 'wsdl/orders/split.wsdl')}"/><host hostType="Customize" exeFileName="/bin/true"/></microsoft.Hpc.Session.ServiceRegistration></configuration>`)
  const start = async (flags: Record<string, unknown>): Promise<{ head: RunningHead, id: string }> => {
    const head = await place.head({ workerPoolSize: 0, logLevel: 'silent', ...flags }, { workerProgram: undefined })
    return { head, id: ((await call(head, 'POST', 'sessions', { service: 'Orders' })).body as { sessionId: string }).sessionId }
  }

  await t.test('addresses: nobody\'s word is taken for a proxy\'s unless it is trusted', async t => {
    const { head, id } = await start({})
    t.strictSame(await told(head, id, { ...PROXY, host: 'grid.example:81' }), expected('http://grid.example:81', id))
    t.strictSame(await told(head, id, { host: 'a"><script>' }), expected(head.http, id))
    await head.close()
  })

  await t.test('addresses: a trusted one\'s is', async t => {
    const { head, id } = await start({ trustedProxies: 'loopback' })
    t.strictSame(await told(head, id, PROXY), expected('https://grid.example:8443/soa', id))
    t.strictSame(await told(head, id, { host: 'inner', forwarded: 'host="[2001:db8::1]:80";proto=http' }), expected('http://[2001:db8::1]:80', id))
    await head.close()
  })

  await t.test('addresses: and what is advertised counts more than both', async t => {
    const { head, id } = await start({ trustedProxies: 'loopback', advertise: 'grid.example' })
    t.strictSame(await told(head, id, PROXY), expected(`http://grid.example:${new URL(head.http).port}`, id))
    await head.close()
  })

  await t.test('addresses: settings that mean nothing keep the head from starting', async t => {
    await t.rejects(place.head({ trustedProxies: 'proxy.example' }), { fault: 'Broker_InvalidConfiguration', message: /^trustedProxies: / })
    await t.rejects(place.head({ advertise: 'a b' }), { fault: 'Broker_InvalidConfiguration', message: /^advertise: / })
  })
})
