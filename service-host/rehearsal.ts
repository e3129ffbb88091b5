/**
 * What a warm host does once before it is needed, so that the code is compiled and what Node loads late is there: reads a WSDL, listens, answers a request.
 * Measured by bench/warm-host.bench.ts.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Logger } from '../core/log.ts'
import { listenHttp } from '../transport/http/listener.ts'
import { loadWsdl, operationsOf } from '../wsdl/document.ts'
import { writeElement } from '../wsdl/schema/writer.ts'

const WSDL = `<definitions name="R" targetNamespace="urn:r" xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:r="urn:r" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:x="http://www.w3.org/2001/XMLSchema">
<types><x:schema targetNamespace="urn:r" elementFormDefault="qualified"><x:complexType name="T"><x:sequence><x:element name="a" type="x:int"/><x:element name="b" type="x:string" minOccurs="0" maxOccurs="unbounded" nillable="true"/></x:sequence></x:complexType>
<x:element name="Do"><x:complexType><x:sequence><x:element name="t" type="r:T"/></x:sequence></x:complexType></x:element><x:element name="DoResponse"><x:complexType><x:sequence><x:element name="t" type="r:T"/></x:sequence></x:complexType></x:element></x:schema></types>
<message name="In"><part name="p" element="r:Do"/></message><message name="Out"><part name="p" element="r:DoResponse"/></message>
<portType name="P"><operation name="Do"><input message="r:In"/><output message="r:Out"/></operation></portType>
<binding name="B" type="r:P"><s:binding transport="http://schemas.xmlsoap.org/soap/http"/><operation name="Do"><s:operation soapAction="urn:do"/><input><s:body use="literal"/></input><output><s:body use="literal"/></output></operation></binding>
<service name="S"><port name="B" binding="r:B"><s:address location="http://localhost/"/></port></service></definitions>`

export async function rehearse (log: Logger): Promise<void> {
  const wsdl = loadWsdl({ 'r.wsdl': WSDL }, 'r.wsdl')
  const [operation] = operationsOf(wsdl, '')
  writeElement(wsdl.schema, operation?.outputElement ?? '', { t: { a: 1, b: ['x', null] } })
  const listener = await listenHttp({ route: () => undefined, listen: { host: '127.0.0.1', port: 0 }, log })
  const { hostname, port } = new URL(listener.address)
  const socket = connect(Number(port), hostname).end('GET / HTTP/1.1\r\nhost: r\r\nconnection: close\r\n\r\n').resume()
  await once(socket, 'close')
  await listener.close()
}
