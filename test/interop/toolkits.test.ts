import { execFile, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import soap from 'soap'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { Session } from '../../client/index.ts'
import { Cluster } from '../e2e/cluster.ts'
import { cases, vectors } from '../wsdl/cases.ts'
import { callAsNodeSoap } from './node-soap.ts'
import { CASE_WSDLS, NASTY_NAMES, caseServices, depotService, echoServices, servicesFolder } from './services.ts'

const PYTHON = '/usr/bin/python3'
const noZeep = spawnSync(PYTHON, ['-c', 'import zeep'], { stdio: 'ignore' }).status === 0 ? false : `zeep is not installed for ${PYTHON} (Debian: python3-zeep)`

/** What zeep does wrong by itself, whoever it talks to. */
const ZEEP: Readonly<Record<string, RegExp>> = {
  'calc.Prims.edge': /Double: "inf" is not/, // it writes Python's word for what XML Schema calls INF
  'shapes.Area.group': /no case has these values/, // it leaves a nil item of an array of a complex type out
}

/**
 * What node-soap does wrong by itself as it comes, by case. Its users write their bodies as text (`{ _xml }`) for such services, as our own client does,
 * which passes all cases.
 */
const NODE_SOAP: Readonly<Record<string, readonly string[]>> = {
  'writes members in the namespace of the message and not in that of their type': ['calc.Prims.edge', 'calc.Prims.full', 'calc.Sum.one', 'calc.Sum.three', 'orders.Place.empties', 'orders.Place.full',
    'orders.Place.nils', 'orders.Place.one', 'shapes.Area.square', 'shapes.Deep.derived', 'shapes.Grow.square', 'three.Mix.full'],
  'writes members with a namespace where the schema says unqualified': ['telemetry.Send.derived', 'telemetry.Send.full', 'telemetry.Send.two'],
  'writes a list as one element for each item': ['telemetry.Flags.list'],
  'reads whole numbers and decimals into doubles': ['calc.Big.max', 'calc.Sum.none', 'orders.Find.one', 'orders.Find.two'],
  'trims the text that it reads': ['calc.Echo.blank', 'calc.Echo.space'],
  'sends text that looks like a CDATA section as one': ['calc.Echo.cdatalike'],
  'drops the nil items of an array': ['shapes.All.mixed', 'shapes.Area.group'],
}

/** A value for each of the nasty names, as JSON text: `__proto__` is a member there. */
const values = `{${NASTY_NAMES.map(name => `${JSON.stringify(name)}: "of ${name}"`).join(', ')}}`

/** As `soa service types` prints it, as far as it is used here. */
interface IDepot {
  add: { args: { a: number, b: number }, result: { return: number } }
  touch: { args: { key: string }, result: Record<string, never> }
  note: { args: { line: string, level: 'LOW' | 'HIGH' }, result: undefined }
  stock: { args: Record<string, never>, result: { return: unknown } }
  place: { args: { order: { id: bigint, customer?: string }, rush: boolean }, result: unknown }
}

t.setTimeout(300_000)

t.test('toolkits make a client from ?wsdl alone, with no options, and every value arrives and comes back', async t => {
  const cluster = await Cluster.start(t, { services: servicesFolder(t, { ...caseServices(), ...echoServices(), ...depotService() }), cores: CASE_WSDLS.length + 3 })
  for (const name of CASE_WSDLS) {
    await using session = await Session.create({ service: name, head: cluster.head, maxUnits: 1 })
    const all = cases().filter(one => one.wsdl === name && !one.isReply).map(one => one.name.replace(/\.req$/, ''))

    await t.test(`zeep: ${name}`, { skip: noZeep }, async t => {
      for (const query of name === 'three' ? ['wsdl', 'singleWsdl'] : ['wsdl']) {
        const { stdout } = await promisify(execFile)(PYTHON, [asset('test/interop/zeep_cases.py'), `${session.endpoint}?${query}`, join(vectors, 'cases'), name], { timeout: 60_000 })
        const found = JSON.parse(stdout) as Record<string, Record<string, string | null>>
        t.same(Object.keys(found).sort(), ['Soap11Binding', 'Soap12Binding', 'default'], 'ports of both versions')
        for (const [binding, results] of Object.entries(found)) {
          if (binding !== 'default') t.same(Object.keys(results).sort(), all.sort(), `${binding}: all cases were called`)
          for (const [one, wrong] of Object.entries(results)) {
            const known = ZEEP[one]
            if (known === undefined) t.equal(wrong, null, `${query}, ${binding}: ${one}`)
            else t.match(wrong, known, `${query}, ${binding}: ${one}: zeep's own fault`)
          }
        }
      }
    })

    await t.test(`node-soap: ${name}`, async t => {
      const found = await callAsNodeSoap(`${session.endpoint}?wsdl`, name)
      t.same(Object.keys(found).sort(), all.sort(), 'all cases were called')
      for (const [one, wrong] of Object.entries(found)) {
        const known = Object.entries(NODE_SOAP).find(([, cases]) => cases.includes(one))?.[0]
        if (known === undefined) t.equal(wrong, null, one)
        else t.ok(wrong !== null, `${one}: ${known}`)
      }
    })
  }

  await t.test('zeep: names that are a trap somewhere', { skip: noZeep }, async t => {
    await using session = await Session.create({ service: 'names', head: cluster.head, maxUnits: 1 })
    const dir = t.testdir({ 'names.Echo.all.req.json': values, 'names.Echo.all.rep.json': values })
    const { stdout } = await promisify(execFile)(PYTHON, [asset('test/interop/zeep_cases.py'), `${session.endpoint}?wsdl`, dir, 'names'], { timeout: 60_000 })
    for (const [binding, results] of Object.entries(JSON.parse(stdout) as Record<string, unknown>)) t.same(results, { 'names.Echo.all': null }, binding)
  })

  await t.test('node-soap: names that are a trap somewhere', async t => {
    await using session = await Session.create({ service: 'names', head: cluster.head, maxUnits: 1 })
    const client = await soap.createClientAsync(`${session.endpoint}?wsdl`)
    // Its own fault: it looks members up in a plain object and finds Object's there. The reply has come, with status 200.
    await t.rejects((client.EchoAsync as (args: unknown) => Promise<unknown>)(JSON.parse(values)), { message: /description is not a function/, response: { status: 200 } })
    t.match(client.lastResponse, />of Größe</)
  })

  await t.test('zeep: elements that the schema leaves open', { skip: noZeep }, async t => {
    await using session = await Session.create({ service: 'raw', head: cluster.head, maxUnits: 1 })
    const { stdout } = await promisify(execFile)(PYTHON, [asset('test/interop/zeep_raw.py'), `${session.endpoint}?wsdl`], { timeout: 60_000 })
    const { before, sent, came } = JSON.parse(stdout) as { before: number, sent: string[], came: string[] }
    t.equal(before, 7)
    t.same(came, sent)
  })

  await t.test('style rpc', async t => {
    await using session = await Session.create({ service: 'depot', head: cluster.head, maxUnits: 1 })

    for (const transport of ['http', 'netTcp'] as const) {
      await t.test(`our own client, ${transport}`, async t => {
        const own = await Session.attach(session.id, { head: cluster.head, transport })
        const client = own.client<IDepot>(transport)
        t.same(await client.call('add', { a: 1, b: 2 }), { return: 3 })
        t.same(await client.call('touch', { key: 'k' }), {})
        t.equal(await client.call('note', { line: 'l', level: 'HIGH' }), undefined)
        t.match(await client.call('stock', {}), { return: { $attributes: { level: 'HIGH' } } })
        await t.rejects(client.call('place', { order: { id: 5n, customer: 'C' }, rush: false }), { message: /order 5 is empty/, value: { code: 7, message: 'C' } })
        for (const b of [1, 2, 3]) await client.send('add', { a: 0, b })
        await client.endRequests()
        const sums: number[] = []
        for await (const response of client.responses<'add'>()) sums.push(response.result().return)
        t.same(sums.sort(), [1, 2, 3])
      })
    }

    await t.test('zeep', { skip: noZeep }, async t => {
      const { stdout } = await promisify(execFile)(PYTHON, [asset('test/interop/zeep_rpc.py'), `${session.endpoint}?wsdl`], { timeout: 60_000 })
      const answers = {
        add: 42,
        'add by name': -1,
        place: ['9007199254740993', 'for Größe: bolt & nut', '5.20'],
        sum: 6,
        'sum of none': 0,
        touch: null,
        note: null,
        grow: 3,
        stock: ['LOW', [['bolt', 7], [null, 0]]],
        'typed fault': ['order 5 is empty', [['code', '7'], ['message', 'C']]],
        bug: [/internal error/, null]
      }
      t.match(JSON.parse(stdout), { Soap11Binding: answers, Soap12Binding: answers })
    })

    await t.test('node-soap', async t => {
      const foreign = await soap.createClientAsync(`${session.endpoint}?wsdl`)
      const call = async (name: string, args: unknown): Promise<unknown> => (await (foreign[`${name}Async`] as (args: unknown) => Promise<unknown[]>)(args))[0]
      t.same(await call('add', { b: 40, a: 2 }), { return: 42 }, 'it sends parts in the order in which it is given them')
      t.same(await call('touch', { key: 'k' }), null)
      t.same(await call('note', { line: 'l', level: 'HIGH' }), null)
      t.match(await call('stock', null), { return: { attributes: { level: 'HIGH' }, items: [{ sku: 'bolt', quantity: '7', price: '0.10' }, { quantity: '0' }] } }, 'null: its own way to call what takes nothing')
      await t.rejects(call('place', { order: { id: 5, customer: 'C' }, rush: false }), { message: /order 5 is empty: .*"code":"7","message":"C"/ })
      t.match(await call('grow', { shape: { attributes: { 'xmlns:of': 'urn:depot:data', 'xsi:type': 'of:Square' }, side: 2 }, by: 1.5 }), { return: { side: 3 } })
      // Its own fault: it writes what repeats inside of a part in the namespace of the message. Its users write that as text.
      await t.rejects(call('sum', { values: { item: [1, 2] } }), { message: /at \/sum\/values: element \{urn:depot\}item, expected \{urn:depot:common\}item/ })
      t.same(await call('sum', { values: { $xml: '<c:item>1</c:item><c:item>2</c:item>' } }), { return: 3 })
      t.match(await call('place', { order: { $xml: '<id>1</id><customer>C</customer><lines><sku>a</sku><quantity>2</quantity><price>0.10</price></lines><lines><sku>b</sku><quantity>1</quantity></lines>' }, rush: true }), { receipt: { orderId: 1, remark: 'for C: a & b' }, total: '5.20' })
    })
  })
})
