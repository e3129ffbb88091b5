import t, { type Test } from 'tap'
import { silent } from '../../core/log.ts'
import { FAULTS, type FaultName } from '../../core/errors.ts'
import { RedisAllocations } from '../../store/redis-allocations.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import type { Reading } from '../../wire/soap/envelope.ts'
import { readSessionFault } from '../../wire/soap/fault.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { BROKER_CONTROLLER, BROKER_LAUNCHER, SESSION_LAUNCHER, type Operation } from '../../wsdl/contracts.ts'
import { decodeReply, type Values } from '../../wsdl/shapes.ts'
import { needsRedis } from '../redis-server.ts'
import { call as rest, ground, until, workersOf } from './head-rig.ts'

const SOAP = { 11: ['http://schemas.xmlsoap.org/soap/envelope/', 'text/xml; charset=utf-8'], 12: ['http://www.w3.org/2003/05/soap-envelope', 'application/soap+xml; charset=utf-8'] } as const
const LIMITS = { maxHeaderBytes: 65_536, maxDepth: 128 }
const UNKNOWN_BROKER = 'PingBroker2Result_BrokerNotExist'

interface Said { status: number, type: string, text: string, reading: Reading, values: Values, headers: Headers }
interface How { soap?: 11 | 12, header?: string, action?: string, host?: string, path?: string }

/** Sends a body as it stands, as a WCF proxy does: SOAP 1.1 with the action in HTTP's header, 1.2 with WS-Addressing. */
async function send (head: { http: string }, operation: Operation, body: string, how: How = {}): Promise<Said> {
  const { soap = 11, header = '', action = operation.action, path = operation.namespace.includes('session') ? '/SessionLauncher' : '/BrokerLauncher' } = how
  const [namespace, type] = SOAP[soap]
  const addressing = soap === 11 ? '' : `<w:Action s:mustUnderstand="1">${action}</w:Action><w:MessageID>urn:uuid:1</w:MessageID><w:To s:mustUnderstand="1">${head.http}${path}</w:To>`
  const envelope = `<s:Envelope xmlns:s="${namespace}" xmlns:w="http://www.w3.org/2005/08/addressing"><s:Header>${addressing}${header}</s:Header><s:Body>${body}</s:Body></s:Envelope>`
  const answer = await fetch(head.http + path, { method: 'POST', body: envelope, headers: { 'content-type': type, ...(soap === 11 ? { soapaction: `"${action}"` } : {}) } })
  const bytes = Buffer.from(await answer.arrayBuffer())
  const answered = { status: answer.status, type: answer.headers.get('content-type') ?? '', text: bytes.toString(), headers: answer.headers }
  const reading = readEnvelope(bytes, { limits: LIMITS })
  return { ...answered, reading, values: reading.isFault ? {} : decodeReply(operation, reading.envelope.body, reading.envelope.prefixesInScope) }
}

const { operations: sl } = SESSION_LAUNCHER
const { operations: bl } = BROKER_LAUNCHER

const wrapped = (operation: Operation, fields: string): string => `<${operation.name} xmlns="${operation.namespace}">${fields}</${operation.name}>`
const info = (members: string): string => `<info xmlns:s="http://hpc.microsoft.com/" xmlns:i="http://www.w3.org/2001/XMLSchema-instance" xmlns:b="http://schemas.microsoft.com/2003/10/Serialization/Arrays">${members}</info>`
const MEMBERS = `<s:AdminJobForHostInDiag>false</s:AdminJobForHostInDiag><s:CanPreempt>true</s:CanPreempt><s:ClientConnectionTimeout i:nil="true"/>
  <s:Environments><b:KeyValueOfstringstring><b:Key>LEVEL</b:Key><b:Value>3</b:Value></b:KeyValueOfstringstring></s:Environments>
  <s:MaxUnits>8</s:MaxUnits><s:Priority i:nil="true"/><s:Runtime>-1</s:Runtime><s:Secure>false</s:Secure><s:ServiceName>CcpEchoSvc</s:ServiceName>
  <s:ServiceOperationTimeout>5000</s:ServiceOperationTimeout><s:ServiceVersion i:nil="true"/><s:SessionIdleTimeout>60000</s:SessionIdleTimeout><s:TransportScheme>NetTcp</s:TransportScheme>`
const order = (members = MEMBERS, prefix = 'net.tcp://'): string => `${info(members)}<endpointPrefix>${prefix}</endpointPrefix>`

function isFault (t: Pick<Test, 'equal' | 'match'>, said: Said, fault: FaultName, says: RegExp = /./): void {
  t.equal(said.status, 500)
  t.match(readSessionFault(said.reading), { code: FAULTS[fault].code, name: fault }, fault)
  t.match(said.text, says)
}

t.test('launchers', needsRedis, async t => {
  const place = await ground(t)
  const head = await place.head({ sessionsPerWorker: 1, workerPoolSize: 0 })
  const redis = await openRedis(place.redis.url, { log: silent })
  t.teardown(() => closeRedis(redis))
  const allocate = async (durable = false, members = MEMBERS): Promise<string> => {
    const operation = durable ? sl.AllocateDurable : sl.Allocate
    const said = await send(head, operation, wrapped(operation, order(members)))
    return (said.values[`${operation.name}Result`] as { Id: string }).Id
  }
  const create = (sessionId: string, durable = false, soap: 11 | 12 = 11): Promise<Said> => {
    const operation = durable ? bl.CreateDurable : bl.Create
    return send(head, operation, wrapped(operation, `${info(MEMBERS)}<sessionId>${sessionId}</sessionId>`), { soap })
  }
  const ofSession = (operation: Operation, sessionId: string, soap: 11 | 12 = 11): Promise<Said> =>
    send(head, operation, wrapped(operation, operation.input.map(([name]) => `<${name}>${name === 'endpointPrefix' ? 'https://' : sessionId}</${name}>`).join('')), { soap })
  const ping = async (sessionId: string): Promise<unknown> => (await ofSession(bl.PingBroker2, sessionId)).values.PingBroker2Result

  for (const soap of [11, 12] as const) {
    await t.test(`launchers: a session is allocated, created, pinged, shown and closed by SOAP 1.${soap - 10}`, async t => {
      const allocated = await send(head, sl.Allocate, wrapped(sl.Allocate, order()), { soap })
      t.equal(allocated.status, 200)
      t.match(allocated.type, soap === 11 ? /^text\/xml/ : /^application\/soap\+xml.*AllocateResponse/)
      t.equal(allocated.reading.envelope.relatesTo, soap === 11 ? undefined : 'urn:uuid:1')
      if (soap === 12) t.equal(allocated.reading.envelope.action, 'http://hpc.microsoft.com/sessionlauncher/ISessionLauncher/AllocateResponse')
      t.match(allocated.values.AllocateResult, { BrokerLauncherEpr: [`${head.http}/BrokerLauncher`], ServiceVersion: undefined, SessionInfo: undefined })
      const { Id: sessionId } = allocated.values.AllocateResult as { Id: string }
      t.match(sessionId, /^[1-9]\d*$/)
      t.equal(await ping(sessionId), UNKNOWN_BROKER, 'no broker yet')
      t.equal((await rest(head, 'GET', `sessions/${sessionId}`)).status, 404, 'nor a session')

      const created = await create(sessionId, false, soap)
      t.equal(created.status, 200)
      const http = `${head.http}/${sessionId}/Http`
      const result = created.values.CreateResult as Values
      t.strictSame([result.BrokerEpr, result.ControllerEpr, result.ResponseEpr].map(list => (list as unknown[]).slice(0, 2)), [[undefined, http], [undefined, `${http}/Controller`], [undefined, undefined]])
      t.match(result, { ServiceOperationTimeout: 5000, MaxMessageSize: 4_194_304, ClientBrokerHeartbeatInterval: 20_000, ClientBrokerHeartbeatRetryCount: 3, UseAzureQueue: false })
      t.match(created.text, /BrokerEpr.*BrokerUniqueId.*ClientBrokerHeartbeatInterval.*ControllerEpr.*MaxMessageSize.*ResponseEpr.*ServiceOperationTimeout/s)
      t.match(result.BrokerUniqueId, /^[0-9a-f-]{36}$/)
      t.equal(await ping(sessionId), result.BrokerUniqueId)
      t.equal((await ofSession(bl.PingBroker, sessionId, soap)).values.PingBrokerResult, true)
      t.match(await (await fetch((result.BrokerEpr as string[])[1] as string, { method: 'POST', body: 'x' })).text(), /1 bytes$/, 'the address leads to the broker')
      t.match(await redis.hmget(`{soa}:session:${sessionId}`, 'settings', 'environment', 'maxUnits'), [
        /"serviceOperationTimeout":5000,"sessionIdleTimeout":60000,"clientConnectionTimeout":60000/, '{"LEVEL":"3"}', '8'])

      t.match((await ofSession(sl.GetInfo, sessionId, soap)).values.GetInfoResult, {
        BrokerLauncherEpr: `${head.http}/BrokerLauncher`,
        Durable: false,
        Id: sessionId,
        JobState: 'Running',
        Secure: false,
        ServiceOperationTimeout: 5000,
        ServerVersion: { _Major: 5, _Minor: 0 },
        SessionACL: [],
        SessionOwner: 'Everyone',
        TransportScheme: 'Http',
        UseAad: false,
        UseInprocessBroker: false
      })
      t.strictSame((await send(head, bl.GetActiveBrokerIdList, wrapped(bl.GetActiveBrokerIdList, ''), { soap })).values.GetActiveBrokerIdListResult, [sessionId])
      isFault(t, await create(sessionId, false, soap), 'Broker_SessionIdAlreadyExists')
      for (let n = 0; n < 2; n++) t.match(await ofSession(bl.Close, sessionId, soap), { status: 200, text: /CloseResponse/ }, 'closing again is no error')
      t.equal(await ping(sessionId), UNKNOWN_BROKER)
      isFault(t, await ofSession(bl.Attach, sessionId, soap), 'InvalidSessionId')
      isFault(t, await ofSession(sl.GetInfo, sessionId, soap), 'InvalidSessionId')
    })
  }

  await t.test('launchers: UseSessionPool gives the session that is there, to attach to or to create again; it needs ShareSession', async t => {
    const pooled = MEMBERS.replace('<s:TransportScheme>', '<s:ShareSession>true</s:ShareSession><s:TransportScheme>') + '<s:UseSessionPool>true</s:UseSessionPool>'
    const [first, second] = [await allocate(false, pooled), await allocate(false, pooled)]
    t.equal(first, second, 'allocated and not created yet: whoever is first creates it')
    const [one, other] = await Promise.all([create(first), create(first)])
    t.ok((one.values.CreateResult as Values).BrokerUniqueId)
    t.equal((one.values.CreateResult as Values).BrokerUniqueId, (other.values.CreateResult as Values).BrokerUniqueId)
    const third = (await send(head, sl.Allocate, wrapped(sl.Allocate, order(pooled)))).values.AllocateResult
    t.match(third, { Id: first, SessionInfo: { Id: first, JobState: 'Running' } }, 'HPC Pack\'s client attaches when it is told of the session')
    isFault(t, await send(head, sl.Allocate, wrapped(sl.Allocate, order(pooled.replace('<s:ShareSession>true', '<s:ShareSession>false')))), 'InvalidArgument', /ShareSession must be true/)
    await ofSession(bl.Close, first)
    const next = await allocate(false, pooled)
    t.not(next, first)
    await ofSession(sl.Terminate, next)
    t.strictSame(await redis.keys('{soa}:pool:*'), [], 'nothing is left of the pool')
  })

  await t.test('launchers: what does not fit is refused by Allocate, and nothing is left of it', async t => {
    const rows: Array<[members: string, prefix: string, fault: FaultName, says: RegExp]> = [
      [MEMBERS.replace('CcpEchoSvc', 'Nobody'), 'net.tcp://', 'Service_NotFound', /Nobody/],
      [MEMBERS.replace('CcpEchoSvc', '../etc'), 'net.tcp://', 'InvalidArgument', /service/],
      [MEMBERS.replace(/<s:ServiceName>.*<\/s:ServiceName>/, ''), 'net.tcp://', 'InvalidArgument', /info\.ServiceName/],
      [MEMBERS.replace('<s:ServiceVersion i:nil="true"/>', '<s:ServiceVersion xmlns:v="http://schemas.datacontract.org/2004/07/System"><v:_Build>-1</v:_Build><v:_Major>9</v:_Major><v:_Minor>1</v:_Minor><v:_Revision>-1</v:_Revision></s:ServiceVersion>'), 'net.tcp://', 'ServiceVersion_NotFound', /9\.1/],
      [MEMBERS.replace('>8<', '>0<'), 'net.tcp://', 'InvalidArgument', /maxUnits.*1 to 1000000, not 0/],
      [MEMBERS.replace('<s:Priority i:nil="true"/>', '<s:Priority>5</s:Priority>'), 'net.tcp://', 'InvalidArgument', /priority.*0 to 4000, not 5000/],
      [MEMBERS.replace('>5000<', '>0<'), 'net.tcp://', 'Broker_InvalidConfiguration', /serviceOperationTimeout/],
      [MEMBERS.replace('>LEVEL<', '>A=B<'), 'net.tcp://', 'InvalidArgument', /environment/],
      [MEMBERS.replace('>3<', `>${'x'.repeat(65_536)}<`), 'net.tcp://', 'InvalidArgument', /limit is 65536/],
      [MEMBERS.replace('<s:Secure>false', '<s:Secure>true'), 'net.tcp://', 'Broker_BindingSecurityModeMismatched', /Secure=false/],
      [MEMBERS, 'az.table', 'InvalidArgument', /endpointPrefix.*az\.table/],
      [MEMBERS, '', 'InvalidArgument', /endpointPrefix/]
    ]
    for (const [members, prefix, fault, says] of rows) isFault(t, await send(head, sl.Allocate, wrapped(sl.Allocate, order(members, prefix))), fault, says)
    isFault(t, await send(head, sl.AllocateDurable, wrapped(sl.AllocateDurable, '<endpointPrefix>http://</endpointPrefix>')), 'InvalidArgument', /info: is missing/)
    t.strictSame(await redis.keys('{soa}:allocation*'), [])
    t.match((await rest(head, 'GET', 'sessions')).body, { items: [] })
  })

  await t.test('launchers: only what was allocated is created, as what it was allocated, and until it is terminated', async t => {
    for (const id of ['77', '0', 'x/../y', '']) isFault(t, await create(id), 'InvalidSessionId')
    const durable = await allocate(true)
    isFault(t, await create(durable), 'InvalidArgument', /allocated as a durable one/)
    t.equal((await ofSession(sl.Terminate, durable)).status, 200)
    isFault(t, await create(durable, true), 'InvalidSessionId')
    t.strictSame(await redis.keys('{soa}:allocation*'), [])
  })

  await t.test('launchers: a create that failed can be tried again, and leaves nothing when it is terminated', async t => {
    const sessionId = await allocate(false, MEMBERS.replace('CcpEchoSvc', 'Deadly')) // kills each worker that takes it
    for (let n = 0; n < 2; n++) isFault(t, await create(sessionId), 'Broker_FailedToStartBrokerServiceProcess')
    t.match(await redis.keys(`*${sessionId}*`), [`{soa}:allocation:${sessionId}`])
    await ofSession(sl.Terminate, sessionId)
    t.strictSame(await redis.keys(`*${sessionId}*`), [])
  })

  await t.test('launchers: attaching raises a suspended durable session under a new broker', async t => {
    const sessionId = await allocate(true)
    const before = ((await create(sessionId, true)).values.CreateDurableResult as Values).BrokerUniqueId
    t.match(((await ofSession(bl.Attach, sessionId)).values.AttachResult as Values).BrokerUniqueId, before, 'while it is served, nothing changes')
    const { brokerPid } = (await rest(head, 'GET', `sessions/${sessionId}`)).body
    process.kill(brokerPid as number, 'SIGTERM') // suspends its sessions and ends
    await until(async () => workersOf(place.dir), workers => !workers.includes(brokerPid as number))
    t.equal(await ping(sessionId), UNKNOWN_BROKER, 'a ping raises nothing')
    t.match((await ofSession(sl.GetInfo, sessionId)).values.GetInfoResult, { Durable: true, JobState: 'Running' })
    const attached = (await ofSession(bl.Attach, sessionId, 12)).values.AttachResult as Values
    t.match(attached, { BrokerEpr: [undefined, `${head.http}/${sessionId}/Http`], ServiceOperationTimeout: 5000 })
    t.not(attached.BrokerUniqueId, before)
    t.equal(await ping(sessionId), attached.BrokerUniqueId)
    await ofSession(sl.Terminate, sessionId)
    isFault(t, await ofSession(bl.Attach, sessionId), 'InvalidSessionId')
  })

  await t.test('launchers: attaching to an interactive session that is over says so', async t => {
    const sessionId = await allocate()
    await create(sessionId)
    const { brokerPid } = (await rest(head, 'GET', `sessions/${sessionId}`)).body
    process.kill(brokerPid as number, 'SIGTERM')
    await until(async () => (await rest(head, 'GET', `sessions/${sessionId}`)).body.state, state => state === 'Finished')
    isFault(t, await ofSession(bl.Attach, sessionId), 'Session_ValidateJobFailed_AlreadyFinished')
    t.match((await ofSession(sl.GetInfo, sessionId)).values.GetInfoResult, { JobState: 'Finished' })
    await ofSession(bl.Close, sessionId)
  })

  await t.test('launchers: what is asked of the cluster', async t => {
    const ask = async (operation: Operation, fields = ''): Promise<unknown> => Object.values((await send(head, operation, wrapped(operation, fields))).values)[0]
    t.match(await ask(sl.GetServerVersion), { _Build: 0, _Major: 5, _Minor: 0, _Revision: 0 })
    t.strictSame(await ask(sl.GetServiceVersions, '<serviceName>ccpECHOsvc</serviceName>'), [], 'its only registration has no version')
    isFault(t, await send(head, sl.GetServiceVersions, wrapped(sl.GetServiceVersions, '<serviceName>Nobody</serviceName>')), 'Service_NotFound')
    t.equal(await ask(sl.GetSOAConfiguration, '<key>TaskCancelGracePeriod</key>'), '15')
    t.equal(await ask(sl.GetSOAConfiguration, '<key>constructor</key>'), undefined)
    t.strictSame(await ask(sl.GetSOAConfigurations, '<keys xmlns:b="http://schemas.microsoft.com/2003/10/Serialization/Arrays"><b:string>TaskCancelGracePeriod</b:string><b:string>Else</b:string></keys>'),
      { TaskCancelGracePeriod: '15', Else: undefined })
    t.match(await ask(sl.GetClusterInfo), { ClusterName: 'soa', AzureStorageConnectionString: undefined })
  })

  for (const soap of [11, 12] as const) {
    await t.test(`launchers: headers, actions and envelopes that are not known are refused as SOAP 1.${soap - 10} has it`, async t => {
      const body = wrapped(sl.GetServerVersion, '')
      const must = await send(head, sl.GetServerVersion, body, { soap, header: '<h:Lock xmlns:h="urn:h" s:mustUnderstand="1"/>' })
      t.match(must, { status: 500, text: /<(\w+):(faultcode|Value)>\w+:MustUnderstand|<faultcode>\w+:MustUnderstand/ })
      if (soap === 12) t.match(must.text, /NotUnderstood[^>]*qname="h:Lock"/)
      t.equal((await send(head, sl.GetServerVersion, body, { soap, header: '<h:Lock xmlns:h="urn:h"/>' })).status, 200, 'a header that need not be understood')
      const action = await send(head, sl.GetServerVersion, body, { soap, action: 'http://hpc.microsoft.com/sessionlauncher/ISessionLauncher/Fly' })
      t.match(action, { status: 500, text: /ActionNotSupported/ })
      if (soap === 12) t.equal(action.reading.envelope.action, 'http://www.w3.org/2005/08/addressing/fault')
      t.match(await send(head, bl.Close, body, { soap }), { status: 500, text: /GetServerVersion/ }, 'a body that is another operation\'s')

      const strange = await fetch(`${head.http}/SessionLauncher`, { method: 'POST', headers: { 'content-type': SOAP[soap][1] }, body: '<s:Envelope xmlns:s="urn:soap13"><s:Body/></s:Envelope>' })
      t.match([strange.status, await strange.text()], [500, /VersionMismatch/])
    })
  }

  await t.test('launchers: paths are Windows\', GET shows the contract, and what is no SOAP is told so', async t => {
    for (const path of ['/sessionlauncher', '/SESSIONLAUNCHER/']) t.equal((await send(head, sl.GetServerVersion, wrapped(sl.GetServerVersion, ''), { path })).status, 200, path)
    for (const [path, contract] of [['/SessionLauncher', 'ISessionLauncher'], ['/brokerlauncher/', 'IBrokerLauncher']] as const) {
      const page = await fetch(head.http + path)
      t.match([page.status, page.headers.get('content-type'), await page.text()], [200, 'text/html; charset=utf-8', new RegExp(`<h1>${contract}</h1>[^]*href="${head.http}${path}\\?singleWsdl"`)])
      for (const query of ['wsdl', 'SingleWsdl', 'XSD=xsd1']) {
        const shown = await fetch(`${head.http}${path}?${query}`)
        t.match([shown.status, shown.headers.get('content-type'), await shown.text()], [200, 'text/xml; charset=utf-8', query.startsWith('X') ? /<xs:schema/ : new RegExp(`<soap:address location="${head.http}${path}"`)], query)
        const top = await fetch(`${head.http}${path}?${query}`, { method: 'HEAD' })
        t.match([top.status, Number(top.headers.get('content-length')) > 500, await top.text()], [200, true, ''])
      }
      t.match([(await fetch(`${head.http}${path}?xsd=none`)).status, (await fetch(`${head.http}${path}?disco`)).status], [404, 404])
      const put = await fetch(head.http + path, { method: 'PUT', body: 'x' })
      t.match([put.status, put.headers.get('allow')], [405, 'GET, HEAD, POST'])
    }
    t.equal((await fetch(`${head.http}/BrokerLauncher`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })).status, 415)
    t.equal((await fetch(`${head.http}/BrokerLauncher/x`)).status, 404)
  })

  await t.test('launchers: as many allocations wait as sessions are allowed, and each for its time only', async t => {
    let now = 1000
    const clock = { now: () => now, after: () => () => {} }
    const allocations = new RedisAllocations({ redis, prefix: 'other', log: silent, clock }, { keptMs: 60_000, most: 2 })
    const wanted = { service: 'S', durable: false, priority: 2000, settings: {}, environment: {}, state: 'Starting', createdAt: '' } as const
    t.strictSame([await allocations.keep('1', wanted), await allocations.keep('1', wanted), await allocations.keep('2', wanted)], [true, false, true])
    await t.rejects(allocations.keep('3', wanted), { fault: 'Broker_TooManyBrokerRunning', message: /^2 sessions/ })
    t.ok(Math.abs(await redis.pttl('{other}:allocation:1') - 60_000) < 50_000)
    now += 60_000
    t.equal(await allocations.keep('3', wanted), true, 'those before are over')
    t.strictSame([await allocations.get('3'), await allocations.get('4')], [wanted, undefined])
  })
})

t.test('launchers: clients are told the address that the head advertises', needsRedis, async t => {
  const head = await (await ground(t)).head({ advertise: 'grid.example:80', workerPoolSize: 0 })
  t.match((await send(head, sl.Allocate, wrapped(sl.Allocate, order()))).values.AllocateResult, { BrokerLauncherEpr: ['http://grid.example:80/BrokerLauncher'] })
})

t.test('launchers: a request is taken at the addresses that a create gave', needsRedis, async t => {
  const head = await (await ground(t)).head({ workerPoolSize: 0, logLevel: 'silent' }, { workerProgram: undefined })
  const { Id } = (await send(head, sl.AllocateDurable, wrapped(sl.AllocateDurable, order()))).values.AllocateDurableResult as { Id: string }
  const { BrokerEpr, ControllerEpr, BrokerUniqueId } = (await send(head, bl.CreateDurable, wrapped(bl.CreateDurable, `${info(MEMBERS)}<sessionId>${Id}</sessionId>`))).values.CreateDurableResult as {
    BrokerEpr: string[], ControllerEpr: string[], BrokerUniqueId: string
  }
  const [broker, controller] = [BrokerEpr, ControllerEpr].map(list => (list[1] as string).slice(head.http.length)) as [string, string]
  const headers = '<h:HPCServer2008_Broker_UserDataNS xmlns:h="http://www.microsoft.com/hpc">1</h:HPCServer2008_Broker_UserDataNS><h:HPCServer2008_Broker_ClientIdNS xmlns:h="http://www.microsoft.com/hpc">c</h:HPCServer2008_Broker_ClientIdNS>'
  const answer = await fetch(head.http + broker, {
    method: 'POST',
    headers: { 'content-type': SOAP[11][1], soapaction: '"http://tempuri.org/IEchoSvc/Echo"' },
    body: `<s:Envelope xmlns:s="${SOAP[11][0]}"><s:Header>${headers}</s:Header><s:Body><Echo xmlns="http://tempuri.org/"><input>hi</input></Echo></s:Body></s:Envelope>`
  })
  t.equal(answer.status, 200)
  const { EndRequests } = BROKER_CONTROLLER.operations
  const ended = await send(head, EndRequests, wrapped(EndRequests, '<count>1</count><clientid>c</clientid><batchId>-1</batchId><timeoutThrottlingMs>5000</timeoutThrottlingMs><timeoutEOMMs>5000</timeoutEOMMs>'), { path: controller })
  t.equal(ended.status, 200, 'it was stored')
  t.equal((await send(head, bl.PingBroker2, wrapped(bl.PingBroker2, `<sessionID>${Id}</sessionID>`))).values.PingBroker2Result, BrokerUniqueId)
  t.equal((await send(head, bl.Close, wrapped(bl.Close, `<sessionId>${Id}</sessionId>`))).status, 200)
})
