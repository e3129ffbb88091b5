/** `?wsdl` of a service instance: for those who call one by hand, and for service authors. */
import type { SoapEndpoint } from '../transport/channel.ts'
import { singleWsdl } from '../wsdl/splice.ts'
import type { HostSpec } from './host-spec.ts'

export function describe (spec: Pick<HostSpec, 'documents' | 'wsdlFile' | 'service' | 'taskId'>): NonNullable<SoapEndpoint['get']> {
  return async ({ path, query, baseUrl }) => {
    if (/^(?:wsdl|singleWsdl)$/i.test(query)) {
      const body = singleWsdl(spec.documents, spec.wsdlFile, { address: () => `${baseUrl}${path}` })
      return { status: 200, contentType: 'text/xml; charset=utf-8', body }
    }
    return query === '' ? { status: 200, contentType: 'text/plain; charset=utf-8', body: `Service ${spec.service}, task ${spec.taskId}. Its WSDL: ${baseUrl}${path}?wsdl\n` } : undefined
  }
}
