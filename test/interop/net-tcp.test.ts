/**
 * .NET's own net.tcp clients, shaped on the wire as Telepathy's and HPC Pack's, against a whole grid (test/interop/dotnet/telepathy/).
 *
 * Where the traps of [wire-contract] 10 are tested:
 *
 *  1 alphabetical order, 2 AllocateResult and namespaces   SessionScenario (a member out of order stays null in .NET); test/head/launchers.test.ts
 *  3 BrokerInitializationResult's values                   SessionScenario, DurableScenario (unique id = PingBroker2)
 *  4 refusals by Allocate, items of Context                FaultScenario (0x0300001e and others); test/core/errors.test.ts
 *  5 ResponseCallbackId, 6 RelatesTo and actions           Responses.cs (checked on every message), Answers.Check
 *  7 EOM's count, purge; PullResponses never empty         SessionScenario; test/worker/duplex.test.ts; StoredScenario (HTTP)
 *  8 UserData: no reply over net.tcp, an empty one by HTTP SessionScenario (nothing is read there); PlainScenario; StoredScenario
 *  9 clientid, clientId, sessionID                         Contracts.cs: each spelled as HPC Pack spells it, each called
 * 10 PullResponses by XmlSerializer                        StoredScenario (dotnet.test.ts)
 * 11 pushes may overtake GetResponses' reply               Responses.cs (asks without waiting); test/worker/duplex.test.ts
 * 12 several connections, one port, by via                 every scenario: all of net.tcp is on one port here
 * 13 client ids in any case, and empty                     SessionScenario
 * 14 mustUnderstand                                        every call of .NET: it refuses a reply with a header that it would have to understand
 * 15 Attach by GetInfo's address, Durable                  DurableScenario
 * 16 a limit taken from the wrong setting                  RefusalScenario (MaxMessageSize); the custom binding itself is not served
 * 17 user data of faults over HTTP                         FaultScenario (net.tcp); test/worker/over-http.test.ts
 * 18 batch ids of interactive sessions, duplicates         SessionScenario (a request sent twice); test/worker/session.test.ts
 */
import t from 'tap'
import { Cluster, eventually } from '../e2e/cluster.ts'
import { certificates } from './certificates.ts'
import { skip } from './dotnet.ts'
import { perform, type Deed } from './net-tcp-client.ts'

t.setTimeout(600_000)

const SERVICES = 'test/interop/services'

t.test('.NET over net.tcp, as Telepathy and HPC Pack speak it', { skip }, async t => {
  const cluster = await Cluster.start(t, { services: SERVICES, cores: 3 })
  const at = cluster.netTcp
  await t.test('interactive sessions: both ways of reading, status, purge, refusals, faults', t => perform(t, ['telepathy', at]))
  await t.test('proxies of the service\'s own contract; what the transport refuses', t => perform(t, ['plain', at]))
  await t.test('NetHttpBinding: the same over WebSockets, and binary over HTTP', t => perform(t, ['nethttp', at]))
  await t.test('durable sessions: one process sends and is killed, another reads', async t => {
    let durable = ''
    await perform(t, ['durable', at, 'first'], { 'kill me' (sessionId, pid) { durable = sessionId; process.kill(pid, 'SIGKILL') } })
    await perform(t, ['attach', at, durable, 'FIRST'])
  })
  await t.test('kill -9 of the broker and of the head', t => perform(t, ['kills', at], { 'kill worker': killWorker(cluster), 'kill head': async () => { await cluster.kill('head') } }))
})

t.test('.NET over net.tcp with TLS', { skip }, async t => {
  const { authority, server, serverKey, client, stranger } = certificates(t)
  for (const [name, flags, shown] of [
    ['server certificate only', [], ['', '']],
    ['client certificates', ['--tls-client-ca', authority], [client, stranger]],
  ] as const) {
    await t.test(name, async t => {
      const cluster = await Cluster.start(t, { services: SERVICES, cores: 1, flags: ['--tls-certificate', server, '--tls-key', serverKey, ...flags] })
      // .NET compares the certificate's DNS name with the host that it was told, and is told the host that it used.
      await perform(t, ['tls', cluster.netTcp.replace('127.0.0.1', 'localhost'), authority, ...shown])
    })
  }
})

/** Kills a session's broker, if it still has one. */
const killWorker = (cluster: Cluster): Deed => async sessionId => {
  const { brokerPid } = await cluster.session(sessionId)
  if (typeof brokerPid !== 'number') return
  await cluster.kill('worker', sessionId)
  await eventually('the head has seen it', async () => (await cluster.session(sessionId)).brokerPid !== brokerPid)
}
