import t from 'tap'
import { isSoaError } from '../../core/errors.ts'
import { checkContract } from '../../wsdl/check-contract.ts'
import { documents, forms } from './cases.ts'

const SP = 'http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702'
const MSF = 'http://schemas.microsoft.com/ws/2006/05/framing/policy'

interface Parts { policies?: readonly string[], operations?: string, input?: string, types?: string }

/** A contract with one binding for each of `policies`, each the inside of a wsp:Policy. */
function wsdl ({ policies = [''], operations = '<w:operation name="Op"><w:input message="t:m"/><w:output message="t:m"/></w:operation>', input = '', types = '' }: Parts): string {
  const policy = policies.map((inside, i) => `<p:Policy u:Id="p${i}">${inside}</p:Policy>`).join('')
  const binding = policies.map((_, i) => `<w:binding name="B${i}" type="t:P"><p:PolicyReference URI="#p${i}"/><s:binding transport="http://schemas.xmlsoap.org/soap/http"/><w:operation name="Op"><s:operation soapAction="urn:op"/><w:input><s:body use="literal"/>${input}</w:input></w:operation></w:binding>`).join('')
  return `<w:definitions name="W" targetNamespace="urn:t" xmlns:t="urn:t" xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xs="http://www.w3.org/2001/XMLSchema"
    xmlns:p="http://schemas.xmlsoap.org/ws/2004/09/policy" xmlns:u="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd" xmlns:sp="${SP}">
    ${policy}<w:types><xs:schema targetNamespace="urn:t"><xs:element name="a" type="xs:int"/><xs:element name="h" type="xs:int"/>${types}</xs:schema></w:types>
    <w:message name="m"><w:part name="p" element="t:a"/></w:message><w:message name="hm"><w:part name="Token" element="t:h"/></w:message><w:portType name="P">${operations}</w:portType>${binding}</w:definitions>`
}
const check = (parts: Parts): string | readonly string[] => {
  try { return checkContract({ w: wsdl(parts) }, 'w', '').warnings } catch (error) { if (isSoaError(error, 'badContract')) return error.message; throw error }
}

const one = (...assertions: string[]): string => `<p:ExactlyOne>${assertions.map(inside => `<p:All>${inside}</p:All>`).join('')}</p:ExactlyOne>`
const RM = '<r:RMAssertion xmlns:r="http://schemas.xmlsoap.org/ws/2005/02/rm/policy"/>'
const SIGNED = '<sp:SymmetricBinding><p:Policy><sp:ProtectionToken/></p:Policy></sp:SymmetricBinding>'
const TLS = '<sp:TransportBinding><p:Policy><sp:TransportToken/></p:Policy></sp:TransportBinding>'
const ADDRESSING = '<a:UsingAddressing xmlns:a="http://www.w3.org/2006/05/addressing/wsdl"/>'

t.test('policies: what changes messages refuses the contract by name, when no binding does without', async t => {
  const refused: Array<[what: string, policy: string, says: RegExp]> = [
    ['message security', one(SIGNED), /B0 for security of messages \(sp:SymmetricBinding\); export the WSDL from an endpoint without it, or take the policy out/],
    ['signed parts', '<sp:SignedParts/>', /security of messages \(sp:SignedParts\)/],
    ['user names', '<sp:SignedSupportingTokens/>', /sp:SignedSupportingTokens/],
    ['reliable messaging', one(ADDRESSING + RM), /for reliable messaging/],
    ['transactions', '<x:ATAssertion xmlns:x="http://schemas.xmlsoap.org/ws/2004/10/wsat"/>', /transactions/],
    ['callbacks', '<x:CompositeDuplex xmlns:x="http://schemas.microsoft.com/net/2006/06/duplex"/>', /duplex contract/],
    ['an older addressing', '<x:UsingAddressing xmlns:x="http://schemas.xmlsoap.org/ws/2004/08/addressing/policy"/>', /WS-Addressing of August 2004/],
    ['replies elsewhere', '<x:Addressing xmlns:x="http://www.w3.org/2007/05/addressing/metadata"><p:Policy><x:NonAnonymousResponses/></p:Policy></x:Addressing>', /NonAnonymousResponses/],
    ['MTOM', '<x:OptimizedMimeSerialization xmlns:x="http://schemas.xmlsoap.org/ws/2004/09/policy/optimizedmimeserialization"/>', /MTOM/],
    ['both alternatives', one(RM, SIGNED), /asks for what is not supported/]
  ]
  for (const [what, policy, says] of refused) t.match(check({ policies: [policy] }), says, what)
})

t.test('policies: what a service can do without is a warning, and what may be left out is nothing', async t => {
  t.strictSame(check({ policies: [one(ADDRESSING)] }), [])
  t.strictSame(check({ policies: [one(SIGNED, ADDRESSING)] }), [], 'one alternative of two that can be done is enough')
  t.strictSame(check({ policies: [RM.replace('/>', ' p:Optional="true"/>')] }), [], 'optional')
  t.match(check({ policies: [one(TLS)] }), [/^binding \{urn:t\}B0 asks for security of the connection \(sp:TransportBinding\): the service is served without it$/])
  t.match(check({ policies: [`<x:SslTransportSecurity xmlns:x="${MSF}"/>`] }), [/security of the connection \(SslTransportSecurity\)/])
  t.match(check({ policies: ['<x:Thing xmlns:x="urn:x"/>'] }), [/asks for \{urn:x\}Thing, which is not known here/])
  t.match(check({ policies: [SIGNED, ''] }), [/B0 asks for security of messages/], 'one binding that can be served is enough')
})

t.test('contracts: what its operations cannot be told apart by is refused', async t => {
  const op = (name: string, more = ''): string => `<w:operation name="${name}"><w:input message="t:m" ${more}/><w:output message="t:m"/></w:operation>`
  const action = 'x:Action="urn:same" xmlns:x="http://www.w3.org/2006/05/addressing/wsdl"'
  t.match(check({ operations: op('Op') + op('Op', 'name="Op2"') }), /operation Op is there twice \(overloads/)
  t.match(check({ operations: op('A', action) + op('B', action) }), /operations A and B have the same action/)
  t.match(check({ operations: op('A') + op('B') }), [/operations A and B take the same element: a message without an action is for B/])
  t.match(check({ operations: ' ' }), /contract P has no operations/)
})

t.test('contracts: headers and what schemas are not checked for are told', async t => {
  t.strictSame(check({ input: '<s:header message="t:hm" part="Token" use="literal"/>' }), ['message header Token is not handed to the service'])
  t.match(check({ types: '<xs:element name="k"><xs:unique name="u"><xs:selector xpath="x"/><xs:field xpath="."/></xs:unique></xs:element>' }), [/xs:unique u is not checked in messages/])
})

t.test('contracts: all of the vectors can be served, without a warning', async t => {
  for (const name of ['calc', 'orders', 'shapes', 'telemetry', 'three', 'nettcp']) {
    for (const form of forms) t.strictSame(checkContract(documents(name), `${form}.wsdl`, '').warnings, [], `${name} ${form}`)
  }
})
