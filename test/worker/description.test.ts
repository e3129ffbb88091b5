import t from 'tap'
import { silent } from '../../core/log.ts'
import type { Settings } from '../../config/settings.ts'
import type { RegisteredService } from '../../store/service-registry.ts'
import { describeSession, operationsOf } from '../../broker/worker/description.ts'
import { ServiceFacts } from '../../broker/worker/service-facts.ts'
import { documents } from '../wsdl/cases.ts'

type Get = (query: string, path?: string) => Promise<{ status: number, contentType: string, body: string | Uint8Array } | undefined>

function describe (registered: Partial<RegisteredService>, contract = ''): Get {
  const whole: RegisteredService = { name: 'Orders', config: '', file: '/o.config', documents: {}, addedAt: '', ...registered }
  const service = new ServiceFacts(whole, {} as Settings, 0, operationsOf(whole, contract, silent), contract)
  const get = describeSession({ sessionId: '7', isDurable: true, service })
  return (query, path = '/7/Http') => get({ path, query, baseUrl: 'https://grid.example/soa' })
}
const orders = { documents: Object.fromEntries(documents('orders')), wsdlFile: 'split.wsdl' }

t.test('description: a page for people names the service, its operations, and the ways to its WSDL', async t => {
  const page = await describe(orders, 'Contoso.Orders.IOrders')('')
  t.match(page, { status: 200, contentType: 'text/html; charset=utf-8' })
  for (const says of ['<h1>Service Orders</h1>', 'session 7, which is durable', 'https://grid.example/soa/7/Http/Controller', '<td>Place</td><td><code>http://tempuri.org/IOrders/Place</code></td>',
    'href="https://grid.example/soa/7/Http?wsdl"', 'href="https://grid.example/soa/7/Http?singleWsdl"', 'href="https://grid.example/soa/7/Http?xsd=xsd3"', "zeep.Client('https://grid.example/soa/7/Http?wsdl')"]) t.match(String(page?.body), says)
})

t.test('description: the WSDL has the address of the path as it was asked', async t => {
  for (const path of ['/7/Http', '/7/http/']) t.match(await describe(orders)('WSDL', path), { status: 200, contentType: 'text/xml; charset=utf-8', body: `<soap:address location="https://grid.example/soa${path}"/>` })
  t.equal(await describe(orders)('disco'), undefined)
})

t.test('description: a service without a WSDL has a page, which says so', async t => {
  const get = describe({})
  t.match((await get(''))?.body, 'There is no WSDL of it.')
  t.equal(await get('wsdl'), undefined)
})

t.test('description: a WSDL that the broker cannot read is served, with a page', async t => {
  const rpc = { documents: { w: orders.documents['flat.wsdl']?.replaceAll('use="literal"', 'use="encoded"') ?? '' }, wsdlFile: 'w' }
  const get = describe(rpc)
  t.match(await get('wsdl'), { status: 200, body: 'location="https://grid.example/soa/7/Http"' })
  t.match((await get(''))?.body, '?wsdl')
})
