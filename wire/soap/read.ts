import { SoaError } from '../../core/errors.ts'
import { NAME } from '../xml/characters.ts'
import { qname } from '../xml/events.ts'
import { TOKEN, XmlScanner, type Token } from '../xml/scan.ts'
import { toUtf8 } from './encoding.ts'
import { HPC, OLD_WSA, SOAP11, SOAP12, WSA, WSA_NONE, type Envelope, type QName, type Reading, type Scope, type SoapVersion } from './envelope.ts'
import { HPC_HEADER } from './hpc-headers.ts'
import { declaration } from './prefixes.ts'

const WSSE = 'http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd'
/** Headers bigger than this take all declarations in force along, without a look whether they use them. */
const LOOK_INTO_BYTES = 1024
const NOBODY: Scope = []

export interface ReadOptions {
  readonly limits: { readonly maxHeaderBytes: number, readonly maxDepth: number }
  /** The action that HTTP carried, without quotes (encoding.ts `httpAction`); WS-Addressing's wins. */
  readonly soapAction?: string | undefined
  /** What the media type says; an envelope of the other version is refused. */
  readonly soap?: SoapVersion | undefined
  /** Of the media type; see encoding.ts `toUtf8`. */
  readonly charset?: string | undefined
}

/** What the header block says, as it is found. */
interface Found {
  action?: string
  noneAction?: string
  /** A header named Action in any other namespace: where SOAP 1.1 hosts put it ([broker-behaviour] 4.5). */
  strayAction?: string
  messageId?: string
  hpcMessageId?: string
  relatesTo?: string
  /** The same by an older WS-Addressing. */
  old: { action?: string, messageId?: string, relatesTo?: string }
  to?: string
  replyTo?: string
  clientId?: string
  batchId?: number
  requestAction?: string
  preemption?: number
  userData?: Uint8Array
  addressed: boolean
  others: Uint8Array[]
  mustUnderstand: QName[]
}

/** One for all messages, since reading is synchronous: its tables are then allocated once. */
const scanner = new XmlScanner()

/**
 * Bytes of one SOAP 1.1 or 1.2 message → envelope and the facts of this hop. One scan, no object for the body; the reading's byte fields are views of the input.
 * Headers under `mustUnderstand` are those aimed at us that nothing here reads: Action, To, HPC Pack's and Security are not among them.
 * Throws SoaError: badEnvelope, versionMismatch, overLimit (maxHeaderBytes, maxDepth); nothing else, whatever the bytes.
 */
export function readEnvelope (bytes: Uint8Array, options: ReadOptions): Reading {
  try {
    return read(toUtf8(bytes, options.charset), options)
  } finally {
    scanner.close()
  }
}

function read (bytes: Uint8Array, options: ReadOptions): Reading {
  scanner.open(bytes, { maxDepth: options.limits.maxDepth, outerLevels: 2 })
  scanner.next()
  const namespace = scanner.namespace()
  if (scanner.local() !== 'Envelope') throw scanner.bad(`its root element is ${scanner.local().slice(0, 80)}`)
  if (namespace !== SOAP11 && namespace !== SOAP12) throw new SoaError('versionMismatch', { namespace: namespace.slice(0, 200) })
  const soap: SoapVersion = namespace === SOAP11 ? 11 : 12
  if (options.soap !== undefined && options.soap !== soap) {
    throw scanner.bad(`the media type is that of SOAP ${options.soap === 11 ? '1.1' : '1.2'}, the envelope's namespace that of SOAP ${soap === 11 ? '1.1' : '1.2'}`)
  }

  const found: Found = { old: {}, addressed: false, others: [], mustUnderstand: [] }
  let part = child(namespace)
  if (part === 'Header') {
    readHeader(namespace, options.limits.maxHeaderBytes, found)
    part = child(namespace)
  }
  if (part !== 'Body') throw scanner.bad(part === undefined ? 'it has no Body' : `an element ${part.slice(0, 80)} where Body is due`)

  const prefixesInScope = scanner.scope().filter(([prefix, uri]) => prefix !== '' || uri !== '')
  const from = scanner.at
  let bodyElement: QName | undefined
  let isFault = false
  while (scanner.depth >= 2) {
    if (scanner.next() !== TOKEN.start) continue
    bodyElement = qname(scanner.namespace(), scanner.local())
    isFault = bodyElement === `{${namespace}}Fault`
    scanner.skip(2)
  }
  const body = scanner.bytes.subarray(from, scanner.start)
  const behind = child(namespace)
  if (behind !== undefined) throw scanner.bad(`an element ${behind.slice(0, 80)} behind Body`)
  scanner.next()

  const envelope: Envelope = {
    v: 1,
    soap,
    enc: 'utf8',
    action: found.action ?? found.noneAction ?? found.old.action ?? (options.soapAction || found.strayAction) ?? '',
    messageId: found.messageId ?? found.hpcMessageId ?? found.old.messageId,
    relatesTo: found.relatesTo ?? found.old.relatesTo,
    clientId: found.clientId,
    userData: found.userData,
    otherHeaders: found.others,
    prefixesInScope,
    body
  }
  return {
    envelope,
    batchId: found.batchId ?? -1,
    requestAction: found.requestAction,
    to: found.to,
    replyTo: found.replyTo,
    preemption: found.preemption,
    mustUnderstand: found.mustUnderstand,
    bodyElement,
    isFault,
    addressed: found.addressed
  }
}

/** The next element in Envelope: its local name if it is SOAP's own, else its whole name; undefined at Envelope's end. */
function child (namespace: string): string | undefined {
  for (;;) {
    const token = scanner.next()
    if (token === TOKEN.end) return undefined
    if (token === TOKEN.start) return scanner.namespace() === namespace ? scanner.local() : qname(scanner.namespace(), scanner.local())
  }
}

function readHeader (soapNamespace: string, maxHeaderBytes: number, found: Found): void {
  const from = scanner.start
  const outer = scanner.scope()
  const next = (): Token => {
    const token = scanner.next()
    if (scanner.at - from > maxHeaderBytes) throw new SoaError('overLimit', { setting: 'maxHeaderBytes', limit: maxHeaderBytes, value: headerSize(from) })
    return token
  }
  // The tag itself counts too, and it may be all that there is.
  if (scanner.at - from > maxHeaderBytes) throw new SoaError('overLimit', { setting: 'maxHeaderBytes', limit: maxHeaderBytes, value: headerSize(from) })
  while (scanner.depth >= 2) if (next() === TOKEN.start) readOne(soapNamespace, outer, found, next)
}

/** How big the block is in all, for the one who has to make it smaller; as far as it can be read. */
function headerSize (from: number): number {
  try {
    scanner.skip(2)
  } catch { /* what is wrong behind the limit is not what the sender is told */ }
  return scanner.at - from
}

function readOne (soapNamespace: string, outer: Scope, found: Found, next: () => Token): void {
  const namespace = scanner.namespace()
  const local = scanner.local()
  const text = (): string => scanner.elementText(`header ${local}`, next).trim()
  const skip = (): void => { while (scanner.depth >= 3) next() }
  const once = (field: keyof Found): void => { if (found[field] !== undefined) throw scanner.bad(`header ${local} is there twice`) }
  const put = <F extends 'action' | 'noneAction' | 'messageId' | 'hpcMessageId' | 'to' | 'requestAction'>(field: F): void => {
    once(field)
    const value = text()
    if (value !== '') found[field] = value
  }
  const number = (field: 'batchId' | 'preemption'): void => {
    once(field)
    const value = text()
    if (!/^[+-]?\d{1,10}$/.test(value)) throw scanner.bad(`header ${local} is no whole number`)
    found[field] = Number(value)
  }

  if (namespace === WSA) {
    found.addressed = true
    switch (local) {
      case 'Action': return put('action')
      case 'MessageID': return put('messageId')
      case 'To': return put('to')
      case 'RelatesTo': {
        // A message may relate to others in other ways; only "this is the reply to" is a field of ours.
        const relationship = scanner.attribute('', 'RelationshipType')
        if (found.relatesTo !== undefined || (relationship !== undefined && relationship !== `${WSA}/reply`)) break
        found.relatesTo = text()
        return
      }
      case 'ReplyTo': {
        const address = endpointAddress(next)
        if (address !== undefined) found.replyTo = address
        return
      }
      case 'FaultTo': case 'From': return skip()
    }
  } else if (namespace === HPC) {
    switch (local) {
      case HPC_HEADER.clientId: once('clientId'); found.clientId = scanner.elementText(`header ${local}`, next); return
      case HPC_HEADER.userData: once('userData'); found.userData = selfContained(outer, skip); return
      case HPC_HEADER.messageId: return put('hpcMessageId')
      case HPC_HEADER.requestAction: return put('requestAction')
      case HPC_HEADER.clientInstanceId: return number('batchId')
      case HPC_HEADER.preemption: return number('preemption')
    }
  } else if (namespace === WSA_NONE) {
    if (local === 'Action') return put('noneAction')
    if (local === 'To') return put('to')
  } else if (namespace === WSSE && local === 'Security') return skip()
  else if (OLD_WSA.includes(namespace)) {
    const field = local === 'Action' ? 'action' : local === 'MessageID' ? 'messageId' : local === 'RelatesTo' ? 'relatesTo' : undefined
    if (field === undefined || found.old[field] !== undefined) return skip()
    const value = text()
    if (value !== '') found.old[field] = value
    return
  }

  if (isForUs(soapNamespace)) found.mustUnderstand.push(qname(namespace, local))
  found.others.push(selfContained(outer, () => {
    if (local !== 'Action' || found.strayAction !== undefined) return skip()
    let action = ''
    while (scanner.depth >= 3) {
      const token = next()
      if (token === TOKEN.text || token === TOKEN.cdata) action += scanner.value(token)
    }
    if (action.trim() !== '') found.strayAction = action.trim()
  }))
}

/** mustUnderstand is set and the header is meant for whoever reads the message. [SOAP 1.1] 4.2.2-4.2.3, [SOAP 1.2] part 1, 2.2 and 5.2.3 */
function isForUs (soapNamespace: string): boolean {
  if (scanner.attributeCount === 0) return false
  const must = scanner.attribute(soapNamespace, 'mustUnderstand')?.trim()
  if (must !== '1' && must !== 'true') return false
  const role = scanner.attribute(soapNamespace, soapNamespace === SOAP11 ? 'actor' : 'role')?.trim() ?? ''
  return role === '' || role === 'http://schemas.xmlsoap.org/soap/actor/next' || role === `${SOAP12}/role/next` || role === `${SOAP12}/role/ultimateReceiver`
}

/** The Address in an endpoint reference; the rest is passed over. */
function endpointAddress (next: () => Token): string | undefined {
  let address: string | undefined
  while (scanner.depth >= 3) {
    if (next() === TOKEN.start && scanner.depth === 4 && scanner.namespace() === WSA && scanner.local() === 'Address') address = scanner.elementText('Address', next).trim()
  }
  return address
}

/**
 * The current element with all it needs from outside in its own start tag, so that it can stand anywhere. A prefix may be meant by a value too
 * (`xsi:type="x:int"`), so whatever looks like one counts. Headers that use none come out byte for byte as they went in.
 */
function selfContained (outer: Scope, toItsEnd: () => void): Uint8Array {
  const from = scanner.start
  const nameEnd = scanner.nameEnd
  const own = scanner.attributeCount === 0 ? NOBODY : scanner.ownScope()
  toItsEnd()
  const bytes = scanner.bytes.subarray(from, scanner.at)
  let added = ''
  for (const [prefix, uri] of outer) {
    if (own.some(([redeclared]) => redeclared === prefix) || (prefix === '' ? uri === '' : !mentions(bytes, prefix))) continue
    added += declaration(prefix, uri)
  }
  return added === '' ? bytes : Buffer.concat([bytes.subarray(0, nameEnd - from), Buffer.from(added), bytes.subarray(nameEnd - from)])
}

function mentions (bytes: Buffer, prefix: string): boolean {
  if (bytes.length > LOOK_INTO_BYTES || bytes.includes('&#')) return true
  const length = Buffer.byteLength(prefix)
  for (let at = bytes.indexOf(prefix); at >= 0; at = bytes.indexOf(prefix, at + 1)) {
    // A name that begins or goes on here is another name; behind a colon stands a local name.
    const before = NAME[bytes[at - 1] ?? 0]; const after = NAME[bytes[at + length] ?? 0]
    if (before === 0 && (after === 0 || after === 3)) return true
  }
  return false
}
