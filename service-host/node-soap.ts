/** What modules written for node-soap throw. */
import { cutText } from '../core/cut-text.ts'
import { SoaError } from '../core/errors.ts'
import type { ServiceFault } from '../wire/soap/fault.ts'
import { escapeText } from '../wire/xml/text-writer.ts'

/** node-soap's way to say a fault: `{ Fault: { Code: { Value, Subcode: { Value } }, Reason: { Text }, Detail } }`, or the words of SOAP 1.1. */
export function nodeSoapFault (error: unknown): Omit<ServiceFault, 'soap'> | undefined {
  const fault = membersOf(membersOf(error)?.Fault)
  if (fault === undefined) return undefined
  const code = textOf(membersOf(fault.Code)?.Value ?? fault.faultcode) ?? ''
  const detail = fault.Detail ?? fault.detail
  return {
    blame: /(?:^|:)(?:Sender|Client)\b/.test(code) ? 'sender' : 'receiver',
    reason: cutText(textOf(membersOf(fault.Reason)?.Text ?? fault.faultstring) ?? 'the service answered with a fault'),
    ...(detail === undefined || detail === null ? {} : { detail: Buffer.from(plainXml(detail)) })
  }
}

const membersOf = (value: unknown): Record<string, unknown> | undefined => typeof value === 'object' && value !== null ? value as Record<string, unknown> : undefined
/** A text, also in the two ways in which node-soap puts attributes beside one. */
const textOf = (value: unknown): string | undefined => typeof value === 'string' ? value : textMember(membersOf(value))
const textMember = (value: Record<string, unknown> | undefined): string | undefined => [value?._, value?.$value].find(member => typeof member === 'string')

/** node-soap's details have no type: members become elements of no namespace, a text stays one. Names that are none of XML's are refused. */
function plainXml (value: unknown, depth = 0): string {
  if (depth > 100) throw new SoaError('badValue', { why: 'the detail of a fault nests deeper than 100 levels' })
  const members = membersOf(value)
  if (members === undefined) return escapeText(cleanText(String(value)))
  return Object.entries(members).flatMap(([name, member]) => (Array.isArray(member) ? member as unknown[] : [member]).map(one => {
    if (name === '$value' || name === '_') return escapeText(cleanText(String(one)))
    if (!/^[A-Za-z_][\w.-]*$/.test(name)) throw new SoaError('badValue', { why: `the detail of a fault has ${JSON.stringify(name.slice(0, 100))}, which is no name of an element` })
    return `<${name} xmlns="">${one === undefined || one === null ? '' : plainXml(one, depth + 1)}</${name}>`
  })).join('')
}

/** Texts of exceptions may hold anything, and a fault must not fail for it. */
export const cleanText = (value: string): string => cutText(value).replace(/[^\t\n\r -\ud7ff\ue000-\ufffd]/g, '\ufffd')
