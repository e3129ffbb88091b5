/** What is found out about a service before it is registered, by whoever registers it: the head when files are loaded and when one is sent, and the command line. */
import { existsSync } from 'node:fs'
import { parseRegistration, type Environment, type ServiceRegistration } from '../config/service-registration.ts'
import { isSoaError, SoaError } from '../core/errors.ts'
import type { RegisteredService } from '../store/service-registry.ts'
import { checkContract, type ContractCheck } from '../wsdl/check-contract.ts'

export interface ServiceCheck {
  readonly registration: ServiceRegistration
  /** Undefined: an executable without a WSDL, or with one that only it understands. */
  readonly contract: ContractCheck | undefined
  /** Of the contract, and of what the file names and this machine does not have; those of the file itself are in `registration`. */
  readonly contractWarnings: readonly string[]
}

/**
 * Refuses with `ConfigFile_Invalid` or `Broker_InvalidConfiguration` what could never work; a contract that is wrong or not supported is the `cause`
 * (`badContract`). Of an executable, which reads its messages itself, such a contract is only warned about.
 */
export function checkService ({ config, file, wsdlFile, documents }: Pick<RegisteredService, 'config' | 'file' | 'wsdlFile' | 'documents'>, env?: Environment): ServiceCheck {
  const registration = parseRegistration(config, file, env)
  const { host, service, customBroker } = registration
  const brokerWarnings = customBroker !== undefined && customBroker.class !== '' && !existsSync(customBroker.class) ? [`customBroker/@class ${customBroker.class} is not there on this machine; heads need it`] : []
  if (wsdlFile === undefined) {
    if (host.hostType === 'Standard') throw new SoaError('ConfigFile_Invalid', { file, why: 'it has no WSDL, which our own service host cannot do without' })
    return { registration, contract: undefined, contractWarnings: brokerWarnings }
  }
  try {
    const contract = checkContract(documents, wsdlFile, service.contract)
    return { registration, contract, contractWarnings: [...brokerWarnings, ...contract.warnings] }
  } catch (error) {
    if (!isSoaError(error, 'badContract', 'badXml')) throw error
    if (host.hostType === 'Standard') throw new SoaError('ConfigFile_Invalid', { file, why: error.message }, { cause: error })
    return { registration, contract: undefined, contractWarnings: [...brokerWarnings, `${error.message}; the executable may know better, but clients and types cannot be made from it`] }
  }
}
