import t from 'tap'
import { FAULTS } from '../../core/errors.ts'
import { tcpCaller } from '../../transport/tcp/caller.ts'
import { withTextBody } from '../../wire/soap/body-form.ts'
import { BROKER_LAUNCHER, SESSION_LAUNCHER, type Operation } from '../../wsdl/contracts.ts'
import { decodeReply, encodeRequest, type Values } from '../../wsdl/shapes.ts'
import { needsRedis } from '../redis-server.ts'
import { ground } from './head-rig.ts'

const { operations: sl } = SESSION_LAUNCHER
const { operations: bl } = BROKER_LAUNCHER
const INFO = { ServiceName: 'CcpEchoSvc', Secure: false, TransportScheme: 'NetTcp', MaxUnits: 8, Runtime: -1 }
const limits = { maxMessageSize: 1_000_000, maxHeaderBytes: 65_536, maxDepth: 64 }

t.test('launchers: over net.tcp, with the operations of HPC Pack 2016 too; addresses by what a client asks for and on the host that it called', needsRedis, async t => {
  const { head: start } = await ground(t)
  const head = await start({}, { netTcp: { host: '127.0.0.1', port: 0 } })
  const at = head.netTcp as string
  const call = async (path: string, operation: Operation, values: Values): Promise<Values> => {
    const caller = tcpCaller(`${at}${path}`, { limits, connections: 1, callsPerConnection: 1 })
    const result = await caller.call({ v: 1, soap: 12, enc: 'utf8', action: operation.action, otherHeaders: [], prefixesInScope: [], body: encodeRequest(operation, values) }, { timeoutMs: 60_000, signal: new AbortController().signal })
    await caller.close()
    if (result.outcome !== 'answered') throw new Error(result.outcome)
    const { envelope, isFault } = result.reading
    if (isFault) throw new Error(Buffer.from(withTextBody(envelope).body).toString())
    return decodeReply(operation, withTextBody(envelope).body, envelope.prefixesInScope) as Values
  }
  const endpoint = { Allocate: sl.AllocateV5, AllocateDurable: sl.AllocateDurableV5 }
  for (const [name, operation] of Object.entries(endpoint)) {
    const { [`${operation.name}Result`]: allocated } = await call('/SessionLauncher', operation, { info: INFO, endpointPrefix: 'net.tcp://' }) as Record<string, Values>
    t.match(allocated, { BrokerLauncherEpr: [`${at}/BrokerLauncher`], Id: /^\d+$/ })
    const sessionId = allocated?.Id as string
    const create = name === 'Allocate' ? bl.Create : bl.CreateDurable
    const { [`${create.name}Result`]: created } = await call('/brokerlauncher/', create, { info: INFO, sessionId }) as Record<string, Values>
    t.match(created, {
      BrokerEpr: [`${at}/${sessionId}/NetTcp`, `${head.http}/${sessionId}/Http`],
      ControllerEpr: [`${at}/${sessionId}/NetTcp/Controller`, `${head.http}/${sessionId}/Http/Controller`],
      ResponseEpr: [`${at}/${sessionId}/NetTcp/GetResponse`, undefined]
    })
    const { GetInfoV5Sp1Result: shown } = await call('/SessionLauncher', sl.GetInfoV5Sp1, { endpointPrefix: 'net.tcp://', sessionId, useAad: false })
    t.match(shown, { Id: sessionId, TransportScheme: 'NetTcp', BrokerLauncherEpr: `${at}/BrokerLauncher`, Secure: false })
    await call('/SessionLauncher', sl.TerminateV5, { sessionId })
    await t.rejects(call('/SessionLauncher', sl.GetInfoV5, { endpointPrefix: 'net.tcp://', sessionId }), new RegExp(`>${FAULTS.InvalidSessionId.code}<`))
  }
  t.match(await (await fetch(`${head.http}/api/v1/settings`)).json(), {}, 'HTTP is served beside it')
})
