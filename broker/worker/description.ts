import type { Logger } from '../../core/log.ts'
import type { RegisteredService } from '../../store/service-registry.ts'
import { loadWsdl, operationsOf as contractOperations } from '../../wsdl/document.ts'
import { singleWsdl } from '../../wsdl/splice.ts'
import type { SoapEndpoint } from '../../transport/channel.ts'
import type { ServiceFacts, ServiceOperation } from './service-facts.ts'

/** What the broker needs of the service's WSDL. A WSDL that cannot be read costs one-way calls and actions by body element, not the session. */
export function operationsOf (registered: RegisteredService, contract: string, log: Pick<Logger, 'warn'>): readonly ServiceOperation[] {
  if (registered.wsdlFile === undefined) return []
  try {
    const operations = contractOperations(loadWsdl(registered.documents, registered.wsdlFile), contract)
    return operations.flatMap(({ name, actions, inputElement, oneWay, replyAction }) => [...actions].map(action => ({ name, action, inputElement, oneWay, replyAction })))
  } catch (error) {
    log.warn({ err: error as Error, service: registered.name, wsdl: registered.wsdlFile }, 'WSDL of the service not read')
    return []
  }
}

/** `?wsdl` and `?singleWsdl` of a session, with the address that the caller used; a few words for people without a query. */
export function describeSession (session: { sessionId: string, isDurable: boolean, service: ServiceFacts }): NonNullable<SoapEndpoint['get']> {
  return async ({ path, query, baseUrl }) => {
    const { registered } = session.service
    const address = `${baseUrl}${path}`
    if (query === '') {
      const wsdl = registered.wsdlFile === undefined ? 'It has no WSDL.' : `Its WSDL: ${address}?wsdl`
      return { status: 200, contentType: 'text/plain; charset=utf-8', body: `Session ${session.sessionId} (${session.isDurable ? 'durable' : 'interactive'}) of service ${registered.name}. ${wsdl}\nSend SOAP 1.1 or 1.2 to ${address}\n` }
    }
    if (registered.wsdlFile === undefined || !/^(?:wsdl|singlewsdl)$/i.test(query)) return undefined
    return { status: 200, contentType: 'text/xml; charset=utf-8', body: singleWsdl(registered.documents, registered.wsdlFile, { address: () => address }) }
  }
}
