import t from 'tap'
import { BROKER_CONTROLLER, BROKER_LAUNCHER, operationOf, SESSION_LAUNCHER, type Operation } from '../../wsdl/contracts.ts'
import * as tables from '../../wsdl/data-contracts.ts'
import { toVersion, versionText, type DataContract, type DataType } from '../../wsdl/data-contracts.ts'
import { decodeReply, decodeRequest, encodeReply, encodeRequest, type Value, type Values } from '../../wsdl/shapes.ts'

const A = 'http://hpc.microsoft.com/SessionLauncher'
const ARRAYS = 'http://schemas.microsoft.com/2003/10/Serialization/Arrays'
const SYSTEM = 'http://schemas.datacontract.org/2004/07/System'
const XSI = 'http://www.w3.org/2001/XMLSchema-instance'
const { operations: sessionLauncher } = SESSION_LAUNCHER
const { operations: brokerLauncher } = BROKER_LAUNCHER

const contracts = Object.entries(tables as Record<string, unknown>).filter((entry): entry is [string, DataContract] => (entry[1] as { kind?: string }).kind === 'contract')

t.test('data contracts: members stand in the alphabet\'s order, by code unit', async t => {
  t.equal(contracts.length, 6)
  for (const [name, { members }] of contracts) {
    const names: string[] = members.map(([member]) => member)
    t.strictSame(names, [...names].sort((a, b) => a < b ? -1 : 1), name)
    t.equal(new Set(names).size, names.length, `${name}: each once`)
  }
})

t.test('contracts: actions and parameters are spelled as HPC Pack spells them', async t => {
  t.equal(sessionLauncher.Allocate.action, 'http://hpc.microsoft.com/sessionlauncher/ISessionLauncher/Allocate')
  t.equal(brokerLauncher.PingBroker2.replyAction, 'http://hpc.microsoft.com/brokerlauncher/IBrokerLauncher/PingBroker2Response')
  const parameters = (operation: Operation): string => operation.input.map(([name]) => name).join()
  for (const [operation, names] of [
    [sessionLauncher.Allocate, 'info,endpointPrefix'], [sessionLauncher.AllocateDurable, 'info,endpointPrefix'], [sessionLauncher.GetInfo, 'endpointPrefix,sessionId'],
    [sessionLauncher.Terminate, 'sessionId'], [sessionLauncher.GetServiceVersions, 'serviceName'], [sessionLauncher.GetSOAConfiguration, 'key'],
    [sessionLauncher.GetSOAConfigurations, 'keys'], [sessionLauncher.GetClusterInfo, ''], [sessionLauncher.GetServerVersion, ''], [brokerLauncher.Create, 'info,sessionId'],
    [brokerLauncher.CreateDurable, 'info,sessionId'], [brokerLauncher.Attach, 'sessionId'], [brokerLauncher.Close, 'sessionId'], [brokerLauncher.PingBroker, 'sessionID'],
    [brokerLauncher.PingBroker2, 'sessionID'], [brokerLauncher.GetActiveBrokerIdList, '']
  ] as const) t.equal(parameters(operation), names, operation.name)
  t.equal(Object.keys(sessionLauncher).length + Object.keys(brokerLauncher).length, 21)
  t.equal(operationOf(BROKER_LAUNCHER, '', '{http://hpc.microsoft.com/brokerlauncher/}Close')?.name, 'Close', 'without an action the body element decides')
  t.equal(operationOf(BROKER_LAUNCHER, BROKER_CONTROLLER.operations.Ping.action, undefined), undefined)
})

const allocate = `<Allocate xmlns="http://hpc.microsoft.com/sessionlauncher/">
  <info xmlns:s="http://hpc.microsoft.com/" xmlns:i="${XSI}">
    <s:AdminJobForHostInDiag>false</s:AdminJobForHostInDiag>
    <s:CanPreempt>true</s:CanPreempt>
    <s:DependFilesStorageInfo xmlns:b="${ARRAYS}"/>
    <s:Environments xmlns:b="${ARRAYS}">
      <b:KeyValueOfstringstring><b:Key>LEVEL</b:Key><b:Value>3</b:Value></b:KeyValueOfstringstring>
      <b:KeyValueOfstringstring><b:Key>__proto__</b:Key><b:Value i:nil="true"/></b:KeyValueOfstringstring>
    </s:Environments>
    <s:Novelty><s:Inner>1</s:Inner></s:Novelty>
    <s:MaxUnits>8</s:MaxUnits>
    <s:ParentJobIds xmlns:b="${ARRAYS}"><b:int>4</b:int><b:int>5</b:int></s:ParentJobIds>
    <s:Priority i:nil="true"/>
    <s:Runtime>-1</s:Runtime>
    <s:Secure>false</s:Secure>
    <s:ServiceName>CcpEchoSvc</s:ServiceName>
    <s:ServiceVersion xmlns:v="${SYSTEM}">
      <v:_Build>-1</v:_Build><v:_Major>1</v:_Major><v:_Minor>0</v:_Minor><v:_Revision>-1</v:_Revision>
    </s:ServiceVersion>
    <s:TransportScheme>NetTcp Http</s:TransportScheme>
    <s:UseAzureQueue>false</s:UseAzureQueue>
  </info>
  <endpointPrefix>net.tcp://</endpointPrefix>
</Allocate>`

t.test('data contracts: a start info is read member by member; unknown ones are skipped, nil and absent ones are undefined', async t => {
  const { info, endpointPrefix } = decodeRequest(sessionLauncher.Allocate, Buffer.from(allocate), [])
  t.equal(endpointPrefix, 'net.tcp://')
  const start = info as Values
  t.match(start, { CanPreempt: true, MaxUnits: 8, Runtime: -1, Secure: false, ServiceName: 'CcpEchoSvc', TransportScheme: 'NetTcp Http', DependFilesStorageInfo: {}, ParentJobIds: [4, 5] })
  t.equal(versionText(start.ServiceVersion as Values), '1.0')
  t.strictSame(Object.entries(start.Environments as object), [['LEVEL', '3'], ['__proto__', undefined]])
  t.strictSame([start.Priority, start.MinUnits, 'Novelty' in start], [undefined, undefined, false])

  for (const [wrong, argument] of [
    [allocate.replace('>8<', '>eight<'), /info\.MaxUnits: a whole number/], [allocate.replace('>-1</v:_Build', '>x</v:_Build'), /info\.ServiceVersion\._Build/],
    [allocate.replace('<b:Key>LEVEL</b:Key>', ''), /info\.Environments\[0\]\.Key: is missing/], [allocate.replace('>5</b:int', '>5.5</b:int'), /info\.ParentJobIds\[1\]/]
  ] as const) t.throws(() => decodeRequest(sessionLauncher.Allocate, Buffer.from(wrong), []), { fault: 'InvalidArgument', message: argument })
})

/** Elements in the order of the document, prefixes replaced by their namespaces' letters. */
const shape = (xml: Buffer): string => xml.toString().replace(/ xmlns:\w+="[^"]*"/g, '')

t.test('data contracts: replies are written in the alphabet\'s order, whatever order the values came in', async t => {
  const body = encodeReply(sessionLauncher.Allocate, { AllocateResult: { ServiceVersion: toVersion('1.2'), Id: '42', BrokerLauncherEpr: ['http://broker01/BrokerLauncher'] } })
  t.equal(shape(body), '<a:AllocateResponse><a:AllocateResult><b:BrokerLauncherEpr><c:string>http://broker01/BrokerLauncher</c:string></b:BrokerLauncherEpr><b:Id>42</b:Id>' +
    '<b:ServiceVersion><d:_Build>-1</d:_Build><d:_Major>1</d:_Major><d:_Minor>2</d:_Minor><d:_Revision>-1</d:_Revision></b:ServiceVersion><b:SessionInfo i:nil="true"/></a:AllocateResult></a:AllocateResponse>')
  for (const [prefix, uri] of [['a', 'http://hpc.microsoft.com/sessionlauncher/'], ['b', A], ['c', ARRAYS], ['d', SYSTEM], ['i', XSI]]) t.match(body.toString(), `xmlns:${prefix}="${uri}"`)

  t.equal(shape(encodeReply(sessionLauncher.GetSOAConfigurations, { GetSOAConfigurationsResult: { TaskCancelGracePeriod: '15', Nothing: undefined } })),
    '<a:GetSOAConfigurationsResponse><a:GetSOAConfigurationsResult><b:KeyValueOfstringstring><b:Key>TaskCancelGracePeriod</b:Key><b:Value>15</b:Value></b:KeyValueOfstringstring>' +
    '<b:KeyValueOfstringstring><b:Key>Nothing</b:Key><b:Value i:nil="true"/></b:KeyValueOfstringstring></a:GetSOAConfigurationsResult></a:GetSOAConfigurationsResponse>')
  t.equal(shape(encodeReply(sessionLauncher.GetServiceVersions, { GetServiceVersionsResult: [toVersion('1.0')] })),
    '<a:GetServiceVersionsResponse><a:GetServiceVersionsResult><b:Version><b:_Build>-1</b:_Build><b:_Major>1</b:_Major><b:_Minor>0</b:_Minor><b:_Revision>-1</b:_Revision></b:Version></a:GetServiceVersionsResult></a:GetServiceVersionsResponse>')
  t.equal(shape(encodeReply(sessionLauncher.GetServiceVersions, { GetServiceVersionsResult: [] })), '<a:GetServiceVersionsResponse><a:GetServiceVersionsResult/></a:GetServiceVersionsResponse>', 'an empty list is not nil')
  t.equal(shape(encodeReply(brokerLauncher.Close, {})), '<a:CloseResponse/>')
})

t.test('data contracts: what is written is read back', async t => {
  const value = (type: DataType): Value => {
    if (typeof type === 'string') return { int: -7, 'int?': 2 ** 31 - 1, long: 2 ** 40, boolean: true, 'boolean?': false, base64: 'AAEC', string: 'a & <b>\r\n' }[type]
    if (type.kind === 'enum') return type.values.at(-1)
    if (type.kind === 'list') return [value(type.of), value(type.of), ...(type.of === 'string' ? [undefined] : [])]
    if (type.kind === 'dictionary') return { 'k & 1': 'v', k2: undefined, k3: '' }
    return Object.fromEntries(type.members.map(([name, of]) => [name, value(of)]))
  }
  for (const operation of [...Object.values(sessionLauncher), ...Object.values(brokerLauncher)]) {
    const whole = (fields: Operation['input']): Values => Object.fromEntries(fields.map(([name, type]) => [name, value(type as DataType)]))
    const none = (fields: Operation['input']): Values => Object.fromEntries(fields.map(([name]) => [name, undefined]))
    for (const of of [whole, none]) {
      t.strictSame(decodeRequest(operation, encodeRequest(operation, of(operation.input)), []), of(operation.input), operation.name)
      t.strictSame(decodeReply(operation, encodeReply(operation, of(operation.output)), []), of(operation.output), `${operation.name}Response`)
    }
  }
})

t.test('versions: two to four numbers, and nothing else', async t => {
  for (const text of ['1.0', '2.1.3', '5.0.0.0', '0.12']) t.equal(versionText(toVersion(text) as Values), text)
  for (const text of [undefined, '', '1', 'v1.0', '1.0.0.0.0', '1.-1', '1.x', '9999999999.0']) t.equal(toVersion(text), undefined, String(text))
  t.equal(versionText({ _Major: 1, _Minor: 2, _Build: -1, _Revision: 4 }), '1.2')
})
