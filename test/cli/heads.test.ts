import t from 'tap'
import { fakeHead, run, type Asked } from './helpers.ts'

/** Nobody listens there. */
const DEAD = 'http://127.0.0.1:9'
const items = { items: [] }

async function open (t: { teardown: (end: () => Promise<void>) => unknown }, status = 200, json: unknown = items): Promise<{ url: string, asked: Asked[] }> {
  const asked: Asked[] = []
  const { url, close } = await fakeHead(request => { asked.push(request); return { status, json } })
  t.teardown(close)
  return { url, asked }
}

t.test('cli: of several heads, of SOA_HEAD or --head, the first that answers is taken', async t => {
  const { url, asked } = await open(t)
  t.strictSame(await run(['session', 'list', '--json'], { SOA_HEAD: `${DEAD},${url}/` }), { code: 0, out: '{"items":[]}\n', err: '' })
  t.match(await run(['node', 'list', '--json', '--head', `${DEAD}, ${url}`]), { code: 0, err: '' })
  t.match(asked, [{ url: /^\/api\/v1\/sessions/ }, { url: '/api/v1/nodes' }])
})

t.test('cli: when no head answers each is named with why', async t => {
  t.match(await run(['session', 'list'], { SOA_HEAD: `${DEAD},http://127.0.0.1:7` }), {
    code: 1, out: '', err: /^soa: no head at http:\/\/127\.0\.0\.1:9: nobody listens there; http:\/\/127\.0\.0\.1:7: nobody listens there\. Start one with .*SOA_HEAD or --head\n$/
  })
})

t.test('cli: a head that takes no new sessions is passed over; when it is the last its refusal is shown, and what was before it', async t => {
  const draining = await open(t, 503, { status: 503, name: 'Broker_BrokerIsOffline', detail: 'the broker is offline' })
  const { url, asked } = await open(t, 201, { sessionId: '5', service: 'S', durable: true, state: 'Running', endpoints: {}, counters: {}, clients: [], tasks: [], bytes: 0 })
  t.match(await run(['session', 'create', 'S', '--json'], { SOA_HEAD: `${draining.url},${url}` }), { code: 0, out: /"sessionId":"5"/ })
  t.equal(asked.length, 1)
  t.strictSame(await run(['session', 'create', 'S'], { SOA_HEAD: `${DEAD},${draining.url}` }), {
    code: 1, out: '', err: `soa: Broker_BrokerIsOffline: the broker is offline (before that, ${DEAD}: nobody listens there)\n`
  })
})

t.test('cli: an entry that is no URL of a head is named, and no head is asked', async t => {
  const { url, asked } = await open(t)
  t.match(await run(['session', 'list'], { SOA_HEAD: `${url},grid:8080` }), { code: 2, out: '', err: /--head \/ SOA_HEAD: a URL such as .*, not "grid:8080", entry 2 of 2/ })
  t.same(asked, [])
})
