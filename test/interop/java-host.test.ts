import t from 'tap'
import { request } from 'undici'
import { DurableSession } from '../../client/index.ts'
import { SOAP11, SOAP12, WSA, type Reading } from '../../wire/soap/envelope.ts'
import { readFault } from '../../wire/soap/fault-body.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { Cluster } from '../e2e/cluster.ts'
import { registration, servicesFolder } from './services.ts'

const NS = 'http://prices.example/'
const WSDL = `<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:p="${NS}" targetNamespace="${NS}" name="Prices">
  <types><xs:schema targetNamespace="${NS}" elementFormDefault="qualified">
    <xs:element name="price"><xs:complexType><xs:sequence><xs:element name="style" type="xs:string"/></xs:sequence></xs:complexType></xs:element>
    <xs:element name="priceResponse"><xs:complexType><xs:sequence><xs:element name="return" type="xs:string"/></xs:sequence></xs:complexType></xs:element>
    <xs:element name="PriceFault"><xs:complexType><xs:sequence><xs:element name="code" type="xs:int"/></xs:sequence></xs:complexType></xs:element>
  </xs:schema></types>
  <message name="price"><part name="parameters" element="p:price"/></message>
  <message name="priceResponse"><part name="parameters" element="p:priceResponse"/></message>
  <message name="PriceFault"><part name="fault" element="p:PriceFault"/></message>
  <portType name="Prices"><operation name="price"><input message="p:price"/><output message="p:priceResponse"/><fault name="PriceFault" message="p:PriceFault"/></operation></portType>
  <binding name="PricesPortBinding" type="p:Prices"><soap:binding transport="http://schemas.xmlsoap.org/soap/http" style="document"/>
    <operation name="price"><soap:operation soapAction=""/><input><soap:body use="literal"/></input><output><soap:body use="literal"/></output><fault name="PriceFault"><soap:fault name="PriceFault" use="literal"/></fault></operation>
  </binding>
  <service name="Prices"><port name="PricesPort" binding="p:PricesPortBinding"><soap:address location="REPLACE_WITH_ACTUAL_URL"/></port></service>
</definitions>`

/** What Java's stacks answer, by the request's `style`: a program that knows nothing of this project, SOAP 1.1 and nothing else, chunks and no length. */
const HOST = `#!${process.execPath}
const { createServer } = require('node:http')
const url = new URL(process.env.SOA_LISTEN_URL)
const S = '${SOAP11}'
const response = style => '<ns2:priceResponse xmlns:ns2="${NS}"><return xmlns="${NS}">' + style + '</return></ns2:priceResponse>'
const tries = new Map()
const REPLIES = {
  // JAX-WS (Metro) with addressing
  'jax-ws': id => [200, '<?xml version=\\'1.0\\' encoding=\\'UTF-8\\'?><S:Envelope xmlns:S="' + S + '"><S:Header><To xmlns="${WSA}">${WSA}/anonymous</To><Action xmlns="${WSA}" S:mustUnderstand="1">${NS}Prices/priceResponse</Action>' +
    '<MessageID xmlns="${WSA}">uuid:b4c3</MessageID><RelatesTo xmlns="${WSA}">' + id + '</RelatesTo></S:Header><S:Body>' + response('jax-ws') + '</S:Body></S:Envelope>'],
  // Axis2 with the addressing of 2004
  'axis2': id => [200, '<?xml version=\\'1.0\\' encoding=\\'utf-8\\'?><soapenv:Envelope xmlns:soapenv="' + S + '" xmlns:wsa="http://schemas.xmlsoap.org/ws/2004/08/addressing"><soapenv:Header><wsa:RelatesTo wsa:RelationshipType="wsa:Reply">' + id +
    '</wsa:RelatesTo><wsa:Action soapenv:mustUnderstand="1">${NS}Prices/priceResponse</wsa:Action></soapenv:Header><soapenv:Body>' + response('axis2') + '</soapenv:Body></soapenv:Envelope>'],
  'no action at all': () => [200, '<e:Envelope xmlns:e="' + S + '"><e:Body>' + response('no action at all') + '</e:Body></e:Envelope>'],
  'an action of its own, and a header that must be understood': () => [200, '<e:Envelope xmlns:e="' + S + '"><e:Header><Action>${NS}Prices/priceResponse</Action><t:Audit xmlns:t="urn:audit" e:mustUnderstand="1" e:actor="http://schemas.xmlsoap.org/soap/actor/next">7</t:Audit></e:Header>' +
    '<e:Body>' + response('an action of its own, and a header that must be understood') + '</e:Body></e:Envelope>'],
  'axis 1 fault': () => [500, '<soapenv:Envelope xmlns:soapenv="' + S + '" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault><faultcode xmlns:ns1="http://xml.apache.org/axis/">ns1:Server.userException</faultcode>' +
    '<faultstring>java.lang.IllegalStateException: no price today</faultstring><detail><ns2:hostname xmlns:ns2="http://xml.apache.org/axis/">n7</ns2:hostname></detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>'],
  'typed fault': () => [500, '<S:Envelope xmlns:S="' + S + '" xmlns:p="${NS}"><S:Body><S:Fault><faultcode>S:Server</faultcode><faultstring>no price</faultstring><detail><p:PriceFault><p:code>7</p:code></p:PriceFault></detail></S:Fault></S:Body></S:Envelope>'],
  'once more, please': id => {
    const n = (tries.get(id) ?? 0) + 1
    tries.set(id, n)
    return n > 1 ? [200, '<e:Envelope xmlns:e="' + S + '"><e:Body>' + response('once more, please') + '</e:Body></e:Envelope>'] : [500, '<e:Envelope xmlns:e="' + S + '"><e:Header><a:Action xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing">http://hpc.microsoft.com/session/RetryOperationError</a:Action></e:Header>' +
      '<e:Body><e:Fault><faultcode>e:Server</faultcode><faultstring>busy</faultstring><detail><h:RetryOperationError xmlns:h="http://hpc.microsoft.com/session/"><h:lastFailedServiceId/><h:reason>busy</h:reason><h:retryCount>0</h:retryCount></h:RetryOperationError></detail></e:Fault></e:Body></e:Envelope>']
  }
}
createServer((request, reply) => {
  const chunks = []
  request.on('data', chunk => chunks.push(chunk)).on('end', () => {
    if (!/^text\\/xml/.test(request.headers['content-type'])) { reply.writeHead(415, { 'content-type': 'text/html' }).end('Unsupported Content-Type: ' + request.headers['content-type'] + ' Supported ones are: [text/xml]'); return }
    const text = Buffer.concat(chunks).toString()
    const style = /<(?:\\w+:)?style>([^<]*)</.exec(text)[1]
    const [status, body] = REPLIES[style](/MessageID>([^<]*)</.exec(text)?.[1] ?? 'none')
    reply.writeHead(status, { 'content-type': 'text/xml;charset=UTF-8', server: 'Jetty(9.4)' })
    for (const piece of body.match(/[^]{1,200}/g)) reply.write(piece)
    reply.end()
  })
}).listen(url.port, url.hostname)
process.on('SIGTERM', () => process.exit(0))
`
const STYLES = ['jax-ws', 'axis2', 'no action at all', 'an action of its own, and a header that must be understood', 'once more, please']
const FAULTS = { 'axis 1 fault': 'java.lang.IllegalStateException: no price today', 'typed fault': 'no price' }

t.setTimeout(120_000)

t.test('a host as Java stacks are: SOAP 1.1 alone, and each client gets its answers in the version that it speaks', async t => {
  const cluster = await Cluster.start(t, {
    services: servicesFolder(t, { Prices: { 'host.cjs': HOST, 'Prices.wsdl': WSDL, 'Prices.config': registration('<service contract="Prices"/>', '<host hostType="Customize" exeFileName="./host.cjs"/>') } })
  })
  await using session = await DurableSession.create({ service: 'Prices', head: cluster.head, maxUnits: 1 })
  const body = (style: string): string => `<price xmlns="${NS}"><style>${style}</style></price>`
  const post = async (soap: 11 | 12, style: string): Promise<{ status: number, type: string, reading: Reading }> => {
    const namespace = soap === 11 ? SOAP11 : SOAP12
    const header = soap === 11 ? '' : `<s:Header><a:Action s:mustUnderstand="1" xmlns:a="${WSA}">${NS}Prices/priceRequest</a:Action><a:MessageID xmlns:a="${WSA}">urn:uuid:1-${encodeURIComponent(style)}</a:MessageID></s:Header>`
    const answer = await request(session.endpoint, {
      method: 'POST',
      headers: soap === 11 ? { 'content-type': 'text/xml; charset=utf-8', soapaction: '""' } : { 'content-type': 'application/soap+xml; charset=utf-8' },
      body: `<s:Envelope xmlns:s="${namespace}">${header}<s:Body>${body(style)}</s:Body></s:Envelope>`
    })
    return { status: answer.statusCode, type: String(answer.headers['content-type']), reading: readEnvelope(Buffer.from(await answer.body.arrayBuffer()), { limits: { maxHeaderBytes: 65_536, maxDepth: 64 } }) }
  }

  for (const soap of [12, 11] as const) {
    await t.test(`calls in SOAP ${soap === 11 ? '1.1' : '1.2'}`, async t => {
      for (const style of STYLES) {
        const { status, type, reading } = await post(soap, style)
        t.match({ status, type }, { status: 200, type: soap === 11 ? /^text\/xml/ : /^application\/soap\+xml/ }, style)
        t.match(Buffer.from(reading.envelope.body).toString(), `>${style}<`, style)
        t.match(reading, { mustUnderstand: [], addressed: soap === 12, envelope: { soap, relatesTo: soap === 12 ? `urn:uuid:1-${encodeURIComponent(style)}` : undefined } }, `${style}: its addressing is the client's own`)
        if (soap === 12) t.equal(reading.envelope.action, `${NS}Prices/priceResponse`, style)
      }
      for (const [style, reason] of Object.entries(FAULTS)) {
        const { status, reading } = await post(soap, style)
        t.match([status, reading.envelope.soap, reading.isFault], [500, soap, true], style)
        const fault = readFault(reading.envelope)
        t.match(fault, { code: 'Receiver', reason }, style)
        t.match(Buffer.from(fault?.detail?.content ?? []).toString(), style === 'typed fault' ? /<p:PriceFault[^>]*><p:code>7</ : />n7</, `${style}: its detail`)
      }
    })
  }

  await t.test('stored requests', async t => {
    const client = session.client('java')
    const styles = [...STYLES, ...Object.keys(FAULTS)]
    for (const style of styles) await client.send('price', { style }, { userData: style })
    await client.endRequests()
    const seen: string[] = []
    for await (const response of client.responses()) {
      seen.push(response.userData)
      const reason = FAULTS[response.userData as keyof typeof FAULTS]
      if (reason === undefined) t.match(response.result(), { return: response.userData }, response.userData)
      else t.throws(() => response.result(), { name: 'SoapFaultError', message: new RegExp(reason) }, response.userData)
    }
    t.same(seen.sort(), styles.sort(), 'each once')
    // What the wire says to a client of HPC Pack, which takes a response only by its action.
    const lines = await fetch(`${cluster.head}/api/v1/sessions/${session.id}/clients/java/responses?from=begin`).then(answer => answer.text())
    for (const line of lines.trim().split('\n').map(text => JSON.parse(text) as { action: string, isFault: boolean, userData: string })) {
      if (!line.isFault) t.equal(line.action, `${NS}Prices/priceResponse`, `${line.userData}: the action of its reply`)
    }
  })
})
