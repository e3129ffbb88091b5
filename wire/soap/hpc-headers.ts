import { escapeText } from '../xml/characters.ts'
import { TOKEN, XmlScanner } from '../xml/scan.ts'
import { HPC } from './envelope.ts'

/** HPC Pack's own headers by their names on the wire ([wire-contract] 3.1). The "2008" never changed. None is ever mustUnderstand. */
export const HPC_HEADER = {
  userData: 'HPCServer2008_Broker_UserDataNS',
  clientId: 'HPCServer2008_Broker_ClientIdNS',
  /** The batch id: a counter of the client's, durable sessions only. */
  clientInstanceId: 'HPCServer2008_Broker_ClientInstanceIdNS',
  /** Stands in for WS-Addressing's MessageID where there is none (SOAP 1.1). */
  messageId: 'HPCServer2008_Broker_MessageIdNS',
  requestAction: 'HPCServer2008_Broker_RequestActionNS',
  responseCallbackId: 'HPCServer2008_Broker_ResponseCallbackId',
  /** A new GUID for each dispatch, broker to service host. */
  dispatchId: 'HPCServer2008_Broker_DispatchIdNS',
  /** On a reply of a service host that is being preempted: calls still in progress there. */
  preemption: 'preemption'
} as const

const header = (name: string) => (value: string): Buffer => Buffer.from(`<${name} xmlns="${HPC}">${escapeText(value)}</${name}>`)

export const userDataHeader = header(HPC_HEADER.userData)
export const clientIdHeader = header(HPC_HEADER.clientId)
export const messageIdHeader = header(HPC_HEADER.messageId)
export const requestActionHeader = header(HPC_HEADER.requestAction)
export const responseCallbackIdHeader = header(HPC_HEADER.responseCallbackId)
export const dispatchIdHeader = header(HPC_HEADER.dispatchId)
export const clientInstanceIdHeader = (batchId: number): Buffer => header(HPC_HEADER.clientInstanceId)(String(batchId))
export const preemptionHeader = (left: number): Buffer => header(HPC_HEADER.preemption)(String(left))

/** All text in a UserData element as it came (`Envelope.userData`), that of elements inside it included: what `GetUserData<string>()` reads. */
export function userDataText (userData: Uint8Array): string {
  const scanner = new XmlScanner().open(userData, { maxDepth: Infinity })
  let text = ''
  for (let token = scanner.next(); token !== TOKEN.eof; token = scanner.next()) if (token === TOKEN.text || token === TOKEN.cdata) text += scanner.value(token)
  return text
}

/** The bytes between the tags of a UserData element: XML that its sender put there. */
export function userDataInner (userData: Uint8Array): Uint8Array {
  const scanner = new XmlScanner().open(userData, { maxDepth: Infinity })
  scanner.next()
  const from = scanner.at
  let to = from
  while (scanner.depth > 0) if (scanner.next() === TOKEN.end) to = scanner.start
  return userData.subarray(from, to)
}
