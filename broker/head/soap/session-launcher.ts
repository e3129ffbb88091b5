import { SoaError } from '../../../core/errors.ts'
import { didYouMean, nearNames } from '../../../core/near-names.ts'
import type { Logger } from '../../../core/log.ts'
import type { AllSettings } from '../../../config/settings.ts'
import type { ServiceRegistry } from '../../../store/service-registry.ts'
import type { SessionRecord, SessionStore } from '../../../store/session-store.ts'
import type { ContractCall, Operations } from '../../../transport/serve-contract.ts'
import type { SESSION_LAUNCHER } from '../../../wsdl/contracts.ts'
import { toVersion } from '../../../wsdl/data-contracts.ts'
import type { Values } from '../../../wsdl/shapes.ts'
import type { SessionLauncher } from '../session-launcher.ts'
import { settingsFor } from '../session-request.ts'
import { brokerLauncherAddress, SERVER_VERSION, sessionInfo, type BrokerAddresses } from './answers.ts'
import { sessionRequest } from './start-info.ts'

export interface SessionLauncherNeeds {
  launcher: Pick<SessionLauncher, 'allocate' | 'close'>
  sessions: Pick<SessionStore, 'get'>
  services: Pick<ServiceRegistry, 'get' | 'list'>
  settings: AllSettings
  addresses: (baseUrl: string) => BrokerAddresses
  /** Of the cluster, for GetClusterInfo. */
  clusterName: string
  log: Logger
}

/** Which addresses a client wants ([wire-contract] 1.1); what cannot be meant is refused. */
const PREFIXES = /^(?:https?|net\.tcp):\/\/$/i

/** A session's id in a call: text that no session can have is refused like an id that none has. */
export function idIn (call: ContractCall, field = 'sessionId'): string {
  const sessionId = String(call.fields[field] ?? '').trim()
  if (!/^[1-9]\d{0,9}$/.test(sessionId)) throw new SoaError('InvalidSessionId', { sessionId: sessionId.slice(0, 100) })
  return sessionId
}

/**
 * `/SessionLauncher`: HPC's ISessionLauncher ([wire-contract] 1.1). Allocate checks everything and keeps the order, because a .NET client tries a Create
 * that was refused 20 times before it tells its user why; the session starts with IBrokerLauncher's Create.
 */
export function sessionLauncherOperations (needs: SessionLauncherNeeds): Operations<keyof typeof SESSION_LAUNCHER.operations> {
  const { launcher, sessions, services, settings, addresses, clusterName, log } = needs
  /** Seconds. HPC Pack's clients of a broker of their own ask for it. */
  const configuration: Readonly<Record<string, string>> = { TaskCancelGracePeriod: String(Math.round(settings.taskCancelGracePeriod / 1000)) }
  const configured = (key: string): string | undefined => Object.hasOwn(configuration, key) ? configuration[key] : undefined

  async function allocate (call: ContractCall, durable: boolean): Promise<Values> {
    checkPrefix(call)
    const { request, idle } = sessionRequest(call.fields.info, durable, settings.tlsCertificate !== '')
    const record = await launcher.allocate(request)
    if (idle.length > 0) log.warn({ sessionId: record.sessionId, service: record.service, members: idle }, 'members of the start info have no effect here')
    // A session that is there already: HPC Pack's client attaches to it when it is told its facts; others create it, which is answered likewise.
    const facts = record.isReused === true ? { SessionInfo: await factsOf(record, call) } : {}
    return { BrokerLauncherEpr: [brokerLauncherAddress(addresses(call.baseUrl), prefixIn(call))], Id: record.sessionId, ServiceVersion: toVersion(record.version), ...facts }
  }

  async function info (call: ContractCall): Promise<Values> {
    checkPrefix(call)
    return await factsOf(await record(idIn(call)), call)
  }

  async function factsOf (session: SessionRecord, call: ContractCall): Promise<Values> {
    const runsWith = settingsFor(await services.get(session.service, session.version), session.settings, settings)
    return sessionInfo(session, runsWith, addresses(call.baseUrl), prefixIn(call), settings.tlsRequired)
  }

  const terminate = async (call: ContractCall): Promise<Values> => { await launcher.close(idIn(call)); return {} }

  async function record (sessionId: string): Promise<SessionRecord> {
    const found = await sessions.get(sessionId)
    if (found === undefined) throw new SoaError('InvalidSessionId', { sessionId })
    return found
  }

  return {
    async GetServerVersion () { return { GetServerVersionResult: toVersion(SERVER_VERSION) } },
    async Allocate (call) { return { AllocateResult: await allocate(call, false) } },
    async AllocateDurable (call) { return { AllocateDurableResult: await allocate(call, true) } },
    async AllocateV5 (call) { return { AllocateV5Result: await allocate(call, false) } },
    async AllocateDurableV5 (call) { return { AllocateDurableV5Result: await allocate(call, true) } },
    async GetInfo (call) { return { GetInfoResult: await info(call) } },
    async GetInfoV5 (call) { return { GetInfoV5Result: await info(call) } },
    async GetInfoV5Sp1 (call) { return { GetInfoV5Sp1Result: await info(call) } },
    Terminate: terminate,
    TerminateV5: terminate,
    async GetServiceVersions (call) {
      const serviceName = String(call.fields.serviceName ?? '')
      const all = await services.list()
      const found = all.filter(({ name }) => name.toLowerCase() === serviceName.toLowerCase())
      if (found.length === 0) throw new SoaError('Service_NotFound', { serviceName: serviceName.slice(0, 255) }, { hint: didYouMean(nearNames(serviceName, new Set(all.map(({ name }) => name)))) })
      return { GetServiceVersionsResult: found.map(({ version }) => toVersion(version)).filter(version => version !== undefined) }
    },
    async GetSOAConfiguration (call) { return { GetSOAConfigurationResult: configured(String(call.fields.key ?? '')) } },
    async GetSOAConfigurations (call) {
      const keys = (call.fields.keys ?? []) as readonly unknown[]
      return { GetSOAConfigurationsResult: Object.fromEntries(keys.map(key => [String(key), configured(String(key))])) }
    },
    async GetClusterInfo () { return { GetClusterInfoResult: { ClusterId: clusterName, ClusterName: clusterName } } }
  }
}

const prefixIn = (call: ContractCall): string => String(call.fields.endpointPrefix ?? '')

function checkPrefix (call: ContractCall): void {
  const prefix = prefixIn(call)
  if (!PREFIXES.test(prefix)) throw new SoaError('InvalidArgument', { argument: 'endpointPrefix', why: `http://, https:// or net.tcp://, not ${JSON.stringify(prefix.slice(0, 100))}` })
}
