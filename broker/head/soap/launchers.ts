import { SoaError } from '../../../core/errors.ts'
import type { SoapEndpoint } from '../../../transport/channel.ts'
import { serveContract, type ContractCall, type Operations } from '../../../transport/serve-contract.ts'
import { BROKER_LAUNCHER, SESSION_LAUNCHER } from '../../../wsdl/contracts.ts'
import { asSoaError } from '../../problem.ts'
import { isUnreachable } from '../worker-link.ts'
import { brokerLauncherOperations, type BrokerLauncherNeeds } from './broker-launcher.ts'
import { sessionLauncherOperations, type SessionLauncherNeeds } from './session-launcher.ts'

export interface LaunchersNeeds extends Omit<SessionLauncherNeeds, 'launcher'>, Omit<BrokerLauncherNeeds, 'launcher' | 'services' | 'addresses'> {
  launcher: SessionLauncherNeeds['launcher'] & BrokerLauncherNeeds['launcher']
}

/** HPC Pack's launchers by their paths, `/NetHttp` behind them too ([wire-contract] 4.1), in any case and with or without a slash at the end: its addresses are Windows'. */
export function launchers (needs: LaunchersNeeds): (path: string) => SoapEndpoint | undefined {
  const { settings } = needs
  const endpoints: Readonly<Record<string, SoapEndpoint>> = {
    '/sessionlauncher': serveContract(SESSION_LAUNCHER, settings, told(sessionLauncherOperations(needs))),
    '/brokerlauncher': serveContract(BROKER_LAUNCHER, settings, told(brokerLauncherOperations(needs)))
  }
  return path => endpoints[path.toLowerCase().replace(/\/$/, '').replace(/\/nethttp$/, '')]
}

/** What a worker refuses, and a worker that is gone, come to the caller as SessionFaults: they are no bugs. */
function told<N extends string> (operations: Operations<N>): Operations<N> {
  const translated = (Object.entries(operations) as Array<[N, Operations<N>[N]]>).map(([name, run]) => [name, (call: ContractCall) => run(call).catch(error => {
    const sessionId = String(call.fields.sessionId ?? call.fields.sessionID ?? '').slice(0, 100)
    throw isUnreachable(error) ? new SoaError('Broker_BrokerUnavailable', { sessionId }, { cause: error }) : asSoaError(error, sessionId)
  })])
  return Object.fromEntries(translated) as Operations<N>
}
