import type { Logger } from '../../core/log.ts'
import type { RegisteredService } from '../../store/service-registry.ts'
import { loadWsdl, operationsOf as contractOperations } from '../../wsdl/document.ts'
import { helpPage } from '../../wsdl/help-page.ts'
import { httpEndpoint, ServedWsdl } from '../../wsdl/served-wsdl.ts'
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

/** GET of a session's endpoint: its service's WSDL with the address that the caller used, and without a query a page that says what is here. */
export function describeSession ({ sessionId, isDurable, service }: { sessionId: string, isDurable: boolean, service: ServiceFacts }): NonNullable<SoapEndpoint['get']> {
  const { registered, contract } = service
  const served = registered.wsdlFile === undefined ? undefined : new ServedWsdl(registered.documents, registered.wsdlFile, contract)
  return async ({ path, query, baseUrl }) => {
    const url = `${baseUrl}${path}`
    if (query !== '') return served?.answer(query, httpEndpoint(url))
    const about = `This is session ${sessionId}, which is ${isDurable ? 'durable' : 'interactive'}. A call is answered in the same exchange; a request with HPC's UserData header is kept, and its response is pulled at ${url.replace(/\/$/, '')}/Controller.`
    return { status: 200, contentType: 'text/html; charset=utf-8', body: helpPage({ title: `Service ${registered.name}`, about, url, queries: served?.queries ?? [], operations: served?.operations ?? [] }) }
  }
}
