import { FAULTS } from '../../core/errors.ts'
import { escapeText } from '../xml/characters.ts'
import { qname, splitQName } from '../xml/events.ts'
import { TOKEN, XmlScanner } from '../xml/scan.ts'
import { HPC, SOAP11, SOAP12, WSA, WSA_NONE, type Envelope, type QName, type Scope, type SoapVersion } from './envelope.ts'
import { declaration, freePrefix } from './prefixes.ts'
import { firstElement, withTextBody } from './body-form.ts'

/** SOAP 1.2's words; SOAP 1.1 says Client and Server for the first two and has not the last. */
export type FaultCode = 'Sender' | 'Receiver' | 'MustUnderstand' | 'VersionMismatch' | 'DataEncodingUnknown'

/** A fault as a value. The detail's content stays bytes. [SOAP 1.1] 4.4, [SOAP 1.2] part 1, 5.4 */
export interface FaultBody {
  readonly code: FaultCode
  /** Outermost first. SOAP 1.1 has one code only, and a subcode takes its place there, as WCF writes it. */
  readonly subcodes: readonly QName[]
  /** The English text if there is one, else the first. */
  readonly reason: string
  readonly lang?: string | undefined
  /** SOAP 1.1's faultactor, SOAP 1.2's Node. */
  readonly node?: string | undefined
  readonly detail?: FaultDetail | undefined
}

export interface FaultDetail {
  /** Declarations made between Body and the detail's content, and the detail element's other attributes as they stood. */
  readonly scope: Scope
  readonly attributes: string
  readonly content: Uint8Array
}

const DISPATCHER = 'http://schemas.microsoft.com/net/2005/12/windowscommunicationfoundation/dispatcher'
export const INTERNAL_SERVICE_FAULT: QName = `{${DISPATCHER}}InternalServiceFault`
const STANDARD: ReadonlyMap<string, FaultCode> = new Map([
  ['Client', 'Sender'], ['Server', 'Receiver'], ['Sender', 'Sender'], ['Receiver', 'Receiver'],
  ['MustUnderstand', 'MustUnderstand'], ['VersionMismatch', 'VersionMismatch'], ['DataEncodingUnknown', 'DataEncodingUnknown']
])
const TO_11: Readonly<Record<FaultCode, string>> = { Sender: 'Client', Receiver: 'Server', MustUnderstand: 'MustUnderstand', VersionMismatch: 'VersionMismatch', DataEncodingUnknown: 'Client' }
/** Whose fault a code of somebody else's is, for SOAP 1.1 does not say; of those not named here the receiver is blamed. */
const SENDERS: readonly QName[] = [`{${WSA}}ActionNotSupported`, `{${WSA_NONE}}ActionNotSupported`, `{${DISPATCHER}}DeserializationFailed`, `{${WSA}}InvalidAddressingHeader`, `{${WSA}}MessageAddressingHeaderRequired`]

/** The fault in an envelope's body; undefined when there is none. Throws badEnvelope for a Fault element that is no fault. */
export function readFault (envelope: Envelope): FaultBody | undefined {
  if (envelope.enc !== 'utf8') {
    if (!hasFault(envelope)) return undefined
    envelope = withTextBody(envelope)
  }
  const scanner = new XmlScanner().open(envelope.body, { maxDepth: Infinity, fragmentOf: envelope.prefixesInScope })
  const namespace = envelope.soap === 11 ? SOAP11 : SOAP12
  let token = scanner.next()
  while (token !== TOKEN.start && token !== TOKEN.eof) token = scanner.next()
  if (token === TOKEN.eof || scanner.local() !== 'Fault' || scanner.namespace() !== namespace) return undefined
  const fault: { -readonly [F in keyof FaultBody]: FaultBody[F] } & { subcodes: QName[] } = { code: 'Receiver', subcodes: [], reason: '' }
  const codes: QName[] = []
  while (scanner.depth >= 1) {
    if (scanner.next() !== TOKEN.start) continue
    switch (scanner.local()) {
      case 'faultcode': case 'Value': codes.push(qnameText(scanner, envelope.prefixesInScope)); break
      case 'Text': case 'faultstring': {
        const lang = scanner.attribute('http://www.w3.org/XML/1998/namespace', 'lang')
        const text = scanner.elementText('the reason of a fault')
        if (fault.reason === '' || (/^en\b/i.test(lang ?? '') && !/^en\b/i.test(fault.lang ?? ''))) { fault.reason = text; fault.lang = lang }
        break
      }
      case 'faultactor': case 'Node': fault.node = scanner.elementText('the node of a fault').trim(); break
      case 'Detail': case 'detail': {
        const at = { scope: scanner.scope(), attributes: scanner.plainAttributes() }
        const from = scanner.at; const level = scanner.depth
        scanner.skip(level)
        fault.detail = { ...at, content: envelope.body.subarray(from, scanner.start) }
        break
      }
      case 'Code': case 'Subcode': case 'Reason': break // what counts is inside
      default: scanner.skip(scanner.depth)
    }
  }
  const [first, ...rest] = codes
  if (first !== undefined) Object.assign(fault, codeOf(first, rest, namespace))
  return fault
}

/** Whether the body's first element is the Fault of the envelope's version; looks no further. */
export function hasFault (envelope: Envelope): boolean {
  if (envelope.enc !== 'utf8') return firstElement(envelope) === `{${envelope.soap === 11 ? SOAP11 : SOAP12}}Fault`
  const scanner = new XmlScanner().open(envelope.body, { maxDepth: Infinity, fragmentOf: envelope.prefixesInScope })
  for (;;) {
    const token = scanner.next()
    if (token === TOKEN.start) return scanner.local() === 'Fault' && scanner.namespace() === (envelope.soap === 11 ? SOAP11 : SOAP12)
    if (token === TOKEN.eof) return false
  }
}

function codeOf (first: QName, rest: QName[], namespace: string): { code: FaultCode, subcodes: QName[] } {
  const { uri, local } = splitQName(first)
  // "Client.Authentication" is SOAP 1.1's way to say more; and some write the names without their namespace.
  const standard = uri === namespace || uri === '' ? STANDARD.get(local.split('.', 1)[0] as string) : undefined
  if (standard !== undefined) return { code: standard, subcodes: rest }
  const ours = uri === HPC && Object.hasOwn(FAULTS, local) ? FAULTS[local as keyof typeof FAULTS].blame : undefined
  return { code: ours === 'sender' || SENDERS.includes(first) ? 'Sender' : 'Receiver', subcodes: [first, ...rest] }
}

/** The QName in the current element's text. */
function qnameText (scanner: XmlScanner, outer: Scope): QName {
  const scope = [...scanner.scope(), ...outer]
  const text = scanner.elementText('the code of a fault').trim()
  const colon = text.indexOf(':')
  const uri = scope.find(([prefix]) => prefix === (colon < 0 ? '' : text.slice(0, colon)))?.[1]
  return qname(uri ?? '', text.slice(colon + 1))
}

/** A Fault element that stands where `outer` is in force. `addressed` false: WS-Addressing's codes are written in the namespace that WCF has for messages without it. */
export function writeFault (fault: FaultBody, soap: SoapVersion, outer: Scope = [], addressed = soap === 12): Buffer {
  const namespace = soap === 11 ? SOAP11 : SOAP12
  const scope = fault.detail?.scope ?? []
  const s = freePrefix('s', namespace, [...outer, ...scope])
  const codes = fault.subcodes.map(code => !addressed && soap === 11 && code === `{${WSA}}ActionNotSupported` ? `{${WSA_NONE}}ActionNotSupported` : code)
  const lang = ` xml:lang="${escapeText(fault.lang ?? 'en-US')}"`
  if (soap === 12) {
    const values = codes.map(code => `<${s}:Subcode>${codeElement(`${s}:Value`, code, s)}`).join('') + `</${s}:Subcode>`.repeat(codes.length)
    return Buffer.concat([
      Buffer.from(`<${s}:Fault${declaration(s, namespace)}><${s}:Code><${s}:Value>${s}:${fault.code}</${s}:Value>${values}</${s}:Code>` +
        `<${s}:Reason><${s}:Text${lang}>${escapeText(fault.reason)}</${s}:Text></${s}:Reason>` + (fault.node === undefined ? '' : `<${s}:Node>${escapeText(fault.node)}</${s}:Node>`)),
      ...fault.detail === undefined ? [] : [`<${s}:Detail${declarations(scope)}${fault.detail.attributes}>`, fault.detail.content, `</${s}:Detail>`].map(bytesOf),
      bytesOf(`</${s}:Fault>`)
    ])
  }
  // SOAP 1.1's children have no namespace, so the default namespace, should there be one, ends at Fault and is given back to each element of the detail.
  const around = outer.find(([prefix]) => prefix === '')?.[1] ?? ''
  const inDetail = scope.find(([prefix]) => prefix === '')?.[1] ?? around
  const code = codes[0] === undefined ? `<faultcode>${s}:${TO_11[fault.code]}</faultcode>` : codeElement('faultcode', codes[0], s)
  return Buffer.concat([
    Buffer.from(`<${s}:Fault${declaration(s, namespace)}${around === '' ? '' : ' xmlns=""'}>${code}<faultstring${lang}>${escapeText(fault.reason)}</faultstring>` +
      (fault.node === undefined ? '' : `<faultactor>${escapeText(fault.node)}</faultactor>`)),
    ...fault.detail === undefined
      ? []
      : [`<detail${declarations(scope.filter(([prefix]) => prefix !== ''))}${fault.detail.attributes}>`,
          inDetail === '' ? fault.detail.content : withDefaultNamespace(fault.detail.content, inDetail, [...scope, ...outer]), '</detail>'].map(bytesOf),
    bytesOf(`</${s}:Fault>`)
  ])
}

/** The envelope in the other version's shape of a fault; any other body means the same in both, and stays as it is. */
export function convertSoap (envelope: Envelope, soap: SoapVersion, addressed: boolean): Envelope {
  const fault = envelope.soap === soap ? undefined : readFault(envelope)
  return fault === undefined ? { ...envelope, soap } : { ...envelope, soap, enc: 'utf8', body: writeFault(fault, soap, envelope.prefixesInScope, addressed) }
}

function codeElement (name: string, code: QName, taken: string): string {
  const { uri, local } = splitQName(code)
  const prefix = taken === 'c' ? 'd' : 'c'
  return uri === '' ? `<${name}>${escapeText(local)}</${name}>` : `<${name}${declaration(prefix, uri)}>${prefix}:${escapeText(local)}</${name}>`
}

function withDefaultNamespace (content: Uint8Array, uri: string, scope: Scope): Uint8Array {
  const scanner = new XmlScanner().open(content, { maxDepth: Infinity, fragmentOf: scope })
  const out: Uint8Array[] = []
  let copied = 0
  for (let token = scanner.next(); token !== TOKEN.eof; token = scanner.next()) {
    if (token !== TOKEN.start || scanner.depth !== 1 || scanner.ownScope().some(([prefix]) => prefix === '')) continue
    out.push(content.subarray(copied, scanner.nameEnd), bytesOf(declaration('', uri)))
    copied = scanner.nameEnd
  }
  return Buffer.concat([...out, content.subarray(copied)])
}

const declarations = (scope: Scope): string => scope.map(([prefix, uri]) => declaration(prefix, uri)).join('')
const bytesOf = (piece: string | Uint8Array): Uint8Array => typeof piece === 'string' ? Buffer.from(piece) : piece
