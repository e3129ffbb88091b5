import t from 'tap'
import { brokerInitializationResult, sessionInfo } from '../../broker/head/soap/answers.ts'
import { sessionRequest } from '../../broker/head/soap/start-info.ts'
import { readSettings, sessionSettings } from '../../config/read-settings.ts'
import { parseRegistration } from '../../config/service-registration.ts'
import type { SessionRecord } from '../../store/session-store.ts'

const AT = { http: 'http://h', netTcp: undefined, brokerLauncher: undefined }
const registration = (monitor: string): Record<string, unknown> => parseRegistration(
  `<configuration><microsoft.Hpc.Session.ServiceRegistration><service assembly="a.mjs"/></microsoft.Hpc.Session.ServiceRegistration><microsoft.Hpc.Broker><monitor ${monitor}/></microsoft.Hpc.Broker></configuration>`, '/srv/A.config').broker

t.test('heartbeat: clients are told the session\'s interval and retries: HPC Pack\'s by default, the registration file\'s, the start info\'s', async t => {
  const rows: Array<[monitor: string, info: Record<string, number>, interval: number, retries: number]> = [
    ['', {}, 20_000, 3],
    ['clientBrokerHeartbeatInterval="5000" clientBrokerHeartbeatRetryCount="7"', {}, 5000, 7],
    ['clientBrokerHeartbeatInterval="5000"', { ClientBrokerHeartbeatInterval: 1000, ClientBrokerHeartbeatRetryCount: 0 }, 1000, 0],
  ]
  for (const [monitor, info, interval, retries] of rows) {
    const { request } = sessionRequest({ ServiceName: 'A', ...info }, false, false)
    const settings = sessionSettings(readSettings({}, {}, 'session'), registration(monitor), request.settings ?? {})
    const told = { ClientBrokerHeartbeatInterval: interval, ClientBrokerHeartbeatRetryCount: retries }
    t.match(brokerInitializationResult('7', 'u', settings, AT), told)
    const record: SessionRecord = { sessionId: '7', service: 'A', durable: false, priority: 2000, settings: {}, environment: {}, state: 'Running', createdAt: '' }
    t.match(sessionInfo(record, settings, AT, 'http://', false), told)
  }
})

t.test('heartbeat: an interval of 0 would be a timer without a pause in the client, and is refused', async t => {
  const { request } = sessionRequest({ ServiceName: 'A', ClientBrokerHeartbeatInterval: 0 }, false, false)
  t.throws(() => sessionSettings(readSettings({}, {}, 'session'), {}, request.settings ?? {}), { message: /clientBrokerHeartbeatInterval: a whole number of ms, 1 to 2147483647, not 0/ })
})
