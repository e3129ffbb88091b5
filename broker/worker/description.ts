import type { Logger } from '../../core/log.ts'
import type { RegisteredService } from '../../store/service-registry.ts'
import { loadWsdl, operationsOf as contractOperations } from '../../wsdl/document.ts'
import type { ServiceOperation } from './service-facts.ts'

/** What the broker needs of the service's WSDL. A WSDL that cannot be read costs one-way calls and actions by body element, not the session. */
export function operationsOf (registered: RegisteredService, contract: string, log: Pick<Logger, 'warn'>): readonly ServiceOperation[] {
  if (registered.wsdlFile === undefined) return []
  try {
    const operations = contractOperations(loadWsdl(registered.documents, registered.wsdlFile), contract)
    return operations.flatMap(({ name, actions, inputElement, oneWay }) => [...actions].map(action => ({ name, action, inputElement, oneWay })))
  } catch (error) {
    log.warn({ err: error as Error, service: registered.name, wsdl: registered.wsdlFile }, 'WSDL of the service not read')
    return []
  }
}
