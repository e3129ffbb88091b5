import { isSoaError } from '../../../core/errors.ts'
import type { AllSettings } from '../../../config/settings.ts'
import type { ServiceRegistry } from '../../../store/service-registry.ts'
import type { ContractCall, Operations } from '../../../transport/serve-contract.ts'
import type { BROKER_LAUNCHER } from '../../../wsdl/contracts.ts'
import type { Values } from '../../../wsdl/shapes.ts'
import type { SessionLauncher, SessionSeen } from '../session-launcher.ts'
import type { SessionRaising } from '../session-raising.ts'
import { settingsFor } from '../session-request.ts'
import { whyNotServed } from '../session.states.ts'
import { isUnknownThere } from '../worker-link.ts'
import { BROKER_NOT_EXIST, brokerInitializationResult, type BrokerAddresses } from './answers.ts'
import { idIn } from './session-launcher.ts'

export interface BrokerLauncherNeeds {
  launcher: Pick<SessionLauncher, 'start' | 'show' | 'close' | 'served'>
  raising: Pick<SessionRaising, 'servedBy'>
  services: Pick<ServiceRegistry, 'get'>
  settings: AllSettings
  addresses: (baseUrl: string) => BrokerAddresses
}

/** `/BrokerLauncher`: HPC's IBrokerLauncher ([wire-contract] 1.2, [broker-behaviour] 1.4). */
export function brokerLauncherOperations (needs: BrokerLauncherNeeds): Operations<keyof typeof BROKER_LAUNCHER.operations> {
  const { launcher, raising, services, settings, addresses } = needs

  async function initialized ({ record, view }: SessionSeen, { baseUrl }: ContractCall): Promise<Values> {
    const brokerUniqueId = view?.brokerUniqueId
    if (brokerUniqueId === undefined) throw whyNotServed(record)
    const runsWith = settingsFor(await services.get(record.service, record.version), record.settings, settings)
    return brokerInitializationResult(record.sessionId, brokerUniqueId, runsWith, addresses(baseUrl))
  }

  // The order that Allocate checked is what starts: the start info says the same again, with the version that Allocate chose.
  const create = async (call: ContractCall, durable: boolean): Promise<Values> => initialized(await launcher.start(idIn(call), durable), call)

  /** Id of the broker's incarnation; undefined: the session has no broker. Nothing is raised by asking. */
  async function brokerOf (call: ContractCall): Promise<string | undefined> {
    try {
      const sessionId = idIn(call, 'sessionID')
      const worker = await raising.servedBy(sessionId)
      return (await worker?.link.view(sessionId))?.brokerUniqueId
    } catch (error) {
      if (isSoaError(error, 'InvalidSessionId') || isUnknownThere(error)) return undefined
      throw error // slow, perhaps: a client gives up at once when it is told that its broker is gone, but bears a fault or two
    }
  }

  return {
    async Create (call) { return { CreateResult: await create(call, false) } },
    async CreateDurable (call) { return { CreateDurableResult: await create(call, true) } },
    async Attach (call) { return { AttachResult: await initialized(await launcher.show(idIn(call)), call) } },
    async Close (call) {
      const sessionId = String(call.fields.sessionId ?? '').trim()
      if (/^\d{1,10}$/.test(sessionId)) await launcher.close(sessionId) // an id that nobody can have is closed already
      return {}
    },
    async PingBroker (call) { return { PingBrokerResult: await brokerOf(call) !== undefined } },
    async PingBroker2 (call) { return { PingBroker2Result: await brokerOf(call) ?? BROKER_NOT_EXIST } },
    async GetActiveBrokerIdList () { return { GetActiveBrokerIdListResult: (await launcher.served()).map(({ sessionId }) => sessionId) } }
  }
}
