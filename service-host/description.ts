/** `?wsdl` of a service instance: for those who call one by hand, and for service authors. */
import type { SoapEndpoint } from '../transport/channel.ts'
import { httpEndpoint, ServedWsdl } from '../wsdl/served-wsdl.ts'
import type { HostSpec } from './host-spec.ts'

export function describe (spec: Pick<HostSpec, 'documents' | 'wsdlFile' | 'service' | 'taskId'>): NonNullable<SoapEndpoint['get']> {
  const served = new ServedWsdl(spec.documents, spec.wsdlFile)
  return async ({ path, query, baseUrl }) => {
    if (/^(?:wsdl|singleWsdl)$/i.test(query)) return served.answer('singleWsdl', httpEndpoint(`${baseUrl}${path}`))
    return query === '' ? { status: 200, contentType: 'text/plain; charset=utf-8', body: `Service ${spec.service}, task ${spec.taskId}. Its WSDL: ${baseUrl}${path}?wsdl\n` } : undefined
  }
}
