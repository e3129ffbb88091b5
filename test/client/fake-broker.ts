import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { SoaError } from '../../core/errors.ts'
import { reply } from '../../transport/answering.ts'
import type { DuplexEndpoint } from '../../transport/channel.ts'
import { withTextBody } from '../../wire/soap/body-form.ts'
import { toFault } from '../../wire/soap/fault.ts'
import { messageIdHeader, requestActionHeader } from '../../wire/soap/hpc-headers.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { writeEnvelope } from '../../wire/soap/write.ts'
import type { Envelope, Reading } from '../../wire/soap/envelope.ts'
import { BROKER_CONTROLLER, operationOf } from '../../wsdl/contracts.ts'
import { writePulledPage } from '../../wsdl/pulled-page.ts'
import { decodeRequest, encodeReply, type Value, type Values } from '../../wsdl/shapes.ts'

/** What goes wrong with one exchange: answered 503 before anything is done; the connection is cut before, or after it was done; a fault instead. */
export type Trouble = 'unavailable' | 'cutBefore' | 'cutAfter' | SoaError

const NS = 'http://tempuri.org/'
const LIMITS = { maxHeaderBytes: 65_536, maxDepth: 128 }

/** Echo twice: `Echo{input}` → `EchoResult`, and one-way `Note{text}`; Echo declares the fault `TooLong{limit}`. */
export const ECHO_WSDL = `<?xml version="1.0"?>
<wsdl:definitions name="Echo" targetNamespace="${NS}" xmlns:tns="${NS}" xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <wsdl:types><xs:schema elementFormDefault="qualified" targetNamespace="${NS}">
    <xs:element name="Echo"><xs:complexType><xs:sequence><xs:element minOccurs="0" name="input" nillable="true" type="xs:string"/></xs:sequence></xs:complexType></xs:element>
    <xs:element name="EchoResponse"><xs:complexType><xs:sequence><xs:element minOccurs="0" name="EchoResult" nillable="true" type="xs:string"/></xs:sequence></xs:complexType></xs:element>
    <xs:element name="Note"><xs:complexType><xs:sequence><xs:element name="text" type="xs:string"/></xs:sequence></xs:complexType></xs:element>
    <xs:element name="TooLong"><xs:complexType><xs:sequence><xs:element name="limit" type="xs:int"/></xs:sequence></xs:complexType></xs:element>
  </xs:schema></wsdl:types>
  <wsdl:message name="EchoIn"><wsdl:part name="parameters" element="tns:Echo"/></wsdl:message>
  <wsdl:message name="EchoOut"><wsdl:part name="parameters" element="tns:EchoResponse"/></wsdl:message>
  <wsdl:message name="NoteIn"><wsdl:part name="parameters" element="tns:Note"/></wsdl:message>
  <wsdl:message name="TooLongFault"><wsdl:part name="detail" element="tns:TooLong"/></wsdl:message>
  <wsdl:portType name="IEcho">
    <wsdl:operation name="Echo"><wsdl:input message="tns:EchoIn"/><wsdl:output message="tns:EchoOut"/><wsdl:fault name="TooLong" message="tns:TooLongFault"/></wsdl:operation>
    <wsdl:operation name="Note"><wsdl:input message="tns:NoteIn"/></wsdl:operation>
  </wsdl:portType>
  <wsdl:binding name="Basic" type="tns:IEcho"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"/>
    <wsdl:operation name="Echo"><soap:operation soapAction="${NS}IEcho/Echo" style="document"/><wsdl:input><soap:body use="literal"/></wsdl:input><wsdl:output><soap:body use="literal"/></wsdl:output><wsdl:fault name="TooLong"><soap:fault name="TooLong" use="literal"/></wsdl:fault></wsdl:operation>
    <wsdl:operation name="Note"><soap:operation soapAction="${NS}IEcho/Note" style="document"/><wsdl:input><soap:body use="literal"/></wsdl:input></wsdl:operation>
  </wsdl:binding>
  <wsdl:service name="Echo"><wsdl:port name="Basic" binding="tns:Basic"><soap:address location="http://localhost/"/></wsdl:port></wsdl:service>
</wsdl:definitions>`

export interface FakeHead { readonly url: string, readonly die: () => Promise<void> }
interface Kept { readonly envelope: Envelope, readonly batchId: number }

/** One session of an echo service behind REST and SOAP: as little of a head and a broker as a client can tell from the real ones, with troubles on order. */
export class FakeBroker {
  readonly sessionId = '4711'
  readonly requests: Kept[] = []
  readonly messageIds: string[] = []
  /** Names of operations as they arrived: `Echo`, `Flush`, … */
  readonly log: string[] = []
  committed = 0
  isEnded = false
  isDurable = true
  head = ''
  /** What each head says of all. */
  readonly heads: Array<{ http: string, machine: string }> = []
  /** A later life of the client has come: flushes of the older one succeed and do nothing. */
  isOvertaken = false
  /** Requests wait for it before they are answered. */
  gate: Promise<void> | undefined
  /** Most exchanges that were open at once. */
  most = 0
  #open = 0
  readonly #watchers: Array<() => void> = []
  /** By name of operation: what happens to its next exchanges, in order. */
  readonly troubles: Record<string, Array<Trouble | undefined>> = {}
  /** Answer of a request without user data; default: the echo. */
  answer: (input: string) => string | SoaError = input => `node:${input}`
  /** `net.tcp://…`; null: not served. */
  netTcp: string | null = null
  #cursor = 0

  static async open (t: Test): Promise<FakeBroker> {
    const broker = new FakeBroker()
    broker.head = (await broker.openHead(t)).url
    return broker
  }

  /** One more head for the same session; all that go through it end with it. */
  async openHead (t: Test): Promise<FakeHead> {
    const server = createServer((request, response) => { this.#serve(request, response).catch(error => { response.destroy(error as Error) }) })
    await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const die = (): Promise<void> => { server.closeAllConnections(); return new Promise<void>(resolve => { server.close(() => resolve()) }) }
    t.teardown(die)
    this.heads.push({ http: url, machine: 'm' })
    return { url, die }
  }

  /** The same as what is at each address of net.tcp. */
  endpoint (path: string): DuplexEndpoint {
    return {
      limits: { ...LIMITS, maxMessageSize: 1_000_000 },
      open: channel => ({
        message: async reading => {
          const asText = { ...reading, envelope: withTextBody(reading.envelope) }
          this.log.push(asText.envelope.action.split('/').at(-1) ?? '')
          for (const look of this.#watchers) look()
          const answer = this.#handle(path, asText)
          if (answer !== undefined) await reply(channel, reading, answer instanceof SoaError ? toFault(answer, { soap: 12, addressed: true }) : { ...answer, soap: 12 })
        },
      }),
    }
  }

  /** The broker is started anew: its place in the responses is the beginning again. */
  restart (): void { this.#cursor = 0 }

  /** Resolves when so many exchanges of this name have arrived. */
  arrived (name: string, count: number): Promise<void> {
    return new Promise(resolve => { this.#watchers.push(() => { if (this.log.filter(entry => entry === name).length >= count) resolve() }) })
  }

  async #serve (request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk as Uint8Array)
    const body = Buffer.concat(chunks)
    const url = request.url ?? ''
    if (url.startsWith('/api/v1/')) { this.#rest(request.method ?? '', url.slice(8), body, response, `http://${request.headers.host}`); return }
    if (url === '/healthz') { response.end(); return }
    if (url.endsWith('?singleWsdl')) { response.writeHead(200, { 'content-type': 'text/xml' }).end(ECHO_WSDL); return }
    const soapAction = String(request.headers.soapaction ?? '').replaceAll('"', '')
    const reading = readEnvelope(body, { limits: LIMITS, soapAction })
    const name = reading.envelope.action.split('/').at(-1) ?? ''
    this.log.push(name)
    this.most = Math.max(this.most, ++this.#open)
    response.once('close', () => { this.#open-- })
    for (const look of this.#watchers) look()
    await this.gate
    const trouble = this.troubles[name]?.shift()
    if (trouble === 'unavailable') { response.writeHead(503, { 'content-type': 'text/plain' }).end('no broker'); return }
    if (trouble === 'cutBefore') { request.socket.destroy(); return }
    const reply = trouble instanceof SoaError ? trouble : this.#handle(url, reading)
    if (trouble === 'cutAfter') { request.socket.destroy(); return }
    if (reply === undefined) { response.writeHead(202).end(); return }
    const isFault = reply instanceof SoaError
    const envelope = isFault ? toFault(reply, { soap: 11 }) : reply
    response.writeHead(isFault ? 500 : 200, { 'content-type': 'text/xml; charset=utf-8' }).end(writeEnvelope(envelope, { addressing: 'omit' }))
  }

  #rest (method: string, path: string, body: Buffer, response: ServerResponse, head: string): void {
    this.log.push(`${method} ${path}`)
    const trouble = this.troubles[`${method} ${path}`]?.shift()
    if (trouble === 'unavailable') { response.writeHead(503).end(); return }
    if (trouble === 'cutBefore') { response.destroy(); return }
    if (trouble instanceof SoaError && trouble.fault === 'Broker_BrokerIsOffline') {
      response.writeHead(503, { 'content-type': 'application/json' }).end(JSON.stringify({ status: 503, detail: `${head} is being drained`, name: trouble.fault }))
      return
    }
    const json = (status: number, value: unknown): void => { response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value)) }
    if (trouble instanceof SoaError) { json(404, { title: 'no', status: 404, detail: trouble.message, name: trouble.fault, code: 50331678 }); return }
    if (method === 'POST' && path === 'sessions') this.isDurable = (JSON.parse(body.toString()) as { durable: boolean }).durable
    if (path === 'heads') { json(200, { items: this.heads }); return }
    if (method === 'DELETE') { response.writeHead(204).end(); return }
    const client = { clientId: 'C', state: 'ClientConnected', status: 'Ready', total: this.requests.length, flushed: this.committed, processed: this.committed, faulted: 0, endRequests: this.isEnded }
    if (path.endsWith('/clients')) { json(200, [client]); return }
    json(method === 'POST' ? 201 : 200, {
      sessionId: this.sessionId, service: 'Echo', durable: this.isDurable, state: 'Running', endpoints: { http: `${head}/${this.sessionId}/Http`, netTcp: this.netTcp === null ? null : `${this.netTcp}/${this.sessionId}/NetTcp` }, counters: {}, clients: [client], tasks: [], bytes: 0
    })
  }

  #handle (url: string, reading: Reading): Envelope | SoaError | undefined {
    const { envelope } = reading
    if (url.endsWith('/Controller')) {
      const found = operationOf(BROKER_CONTROLLER, envelope.action, reading.bodyElement)
      if (!found) return new SoaError('actionNotSupported', { action: envelope.action })
      const result = this.#control(found.name, decodeRequest(found.operation, envelope.body, envelope.prefixesInScope))
      return result instanceof SoaError ? result : message(found.operation.replyAction, Buffer.isBuffer(result) ? result : encodeReply(found.operation, result))
    }
    if (envelope.action.endsWith('Note')) return undefined
    if (envelope.userData === undefined) {
      const answer = this.answer(inputOf(envelope))
      return answer instanceof SoaError ? answer : message(`${envelope.action}Response`, echoed(answer))
    }
    if (this.isEnded) return new SoaError('Broker_EOMRejected', { state: 'EndRequests' })
    this.messageIds.push(envelope.messageId ?? '')
    if (!this.requests.some(kept => kept.envelope.messageId === envelope.messageId)) this.requests.push({ envelope, batchId: reading.batchId })
    return message(`${envelope.action}Response`, Buffer.alloc(0))
  }

  #control (name: keyof typeof BROKER_CONTROLLER.operations, fields: Record<string, Value>): Values | Buffer | SoaError {
    switch (name) {
      case 'Flush': case 'EndRequests':
        if (this.isOvertaken) return {}
        if (this.isEnded) return new SoaError('Broker_EOMReject_EndRequests', {})
        if (fields.count !== this.requests.length - this.committed) return new SoaError('OperationTimeout', { operation: `${name} of ${String(fields.count)}`, timeoutMs: Number(fields.timeoutFlushMs ?? fields.timeoutEOMMs) })
        this.committed = this.requests.length
        this.isEnded = name === 'EndRequests'
        return {}
      case 'GetRequestsCount': return { GetRequestsCountResult: this.committed }
      case 'GetBrokerClientStatus': return { GetBrokerClientStatusResult: this.isEnded ? 'Finished' : 'Ready' }
      case 'Purge': this.requests.length = this.committed = 0; this.isEnded = false; return {}
      case 'PullResponses': {
        if (fields.position === 'Begin') this.#cursor = 0
        const page = this.requests.slice(this.#cursor, Math.min(this.#cursor + Number(fields.count), this.committed))
        this.#cursor += page.length
        return writePulledPage(this.isEnded && this.#cursor >= this.committed, page.map(({ envelope }) => this.#response(envelope)))
      }
      default: return {}
    }
  }

  #response (request: Envelope): Buffer {
    const answer = this.answer(inputOf(request))
    const reply = answer instanceof SoaError ? toFault(answer, { soap: 11 }) : message(`${request.action}Response`, echoed(answer))
    return writeEnvelope({ ...reply, userData: request.userData }, { addressing: 'none', extraHeaders: [requestActionHeader(request.action), messageIdHeader(request.messageId ?? '')] })
  }
}

const message = (action: string, body: Uint8Array): Envelope => ({ v: 1, soap: 11, enc: 'utf8', action, otherHeaders: [], prefixesInScope: [], body })
const echoed = (text: string): Buffer => Buffer.from(`<EchoResponse xmlns="${NS}"><EchoResult>${text}</EchoResult></EchoResponse>`)
const inputOf = (envelope: Envelope): string => /input>([^<]*)</.exec(Buffer.from(envelope.body).toString())?.[1] ?? ''
