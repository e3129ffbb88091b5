import t from 'tap'
import { isSoaError } from '../../core/errors.ts'
import { nameOfFile, parseRegistration } from '../../config/service-registration.ts'

const file = '/srv/soa/Pricer_1.2.config'
const wrap = (service: string, rest = '', head = ''): string => `${head}<configuration>
  <configSections><sectionGroup name="microsoft.Hpc.Broker" type="Some.Type, Some.Assembly"/></configSections>
  <microsoft.Hpc.Session.ServiceRegistration>${service}</microsoft.Hpc.Session.ServiceRegistration>${rest}
</configuration>`
const plain = '<service assembly="pricer.mjs" contract="IPricer"/>'

const refusal = (xml: string): string => {
  try { parseRegistration(xml, file) } catch (error) { if (isSoaError(error, 'ConfigFile_Invalid')) return error.message; throw error }
  return 'not refused'
}

t.test('registration: name and version come from the file name, split at the last _ before a version', async t => {
  const names: Array<[string, string, string | undefined]> = [
    ['CcpEchoSvc.config', 'CcpEchoSvc', undefined], ['/a/b/Echo_1.0.config', 'Echo', '1.0'], ['My_Own_Svc_2.1.3.config', 'My_Own_Svc', '2.1.3'],
    ['My_Own_Svc.config', 'My_Own_Svc', undefined], ['Svc_2.config', 'Svc_2', undefined], ['Svc_0.0.config', 'Svc_0.0', undefined], ['Svc_1.0.CONFIG', 'Svc', '1.0'], ['a.b.config', 'a.b', undefined]
  ]
  for (const [path, name, version] of names) t.strictSame({ version: undefined, ...nameOfFile(path) }, { name, version }, path)
})

t.test('registration: what a file does not say has HPC Pack\'s default', async t => {
  const read = parseRegistration(wrap(plain), file)
  t.match(read, {
    name: 'Pricer',
    version: '1.2',
    service: { assembly: '/srv/soa/pricer.mjs', contract: 'IPricer', type: '', includeExceptionDetailInFaults: false, maxConcurrentCalls: 0, serviceInitializationTimeout: 60_000, serviceHostIdleTimeout: 3_600_000, serviceHangTimeout: -1, enableMessageLevelPreemption: true },
    host: { hostType: 'Standard', addressing: 'free', scheme: 'http' },
    broker: {},
    warnings: []
  })
  t.equal(read.customBroker, undefined)
  t.strictSame(read.service.environmentVariables, {})
})

t.test('registration: everything that a file says is read', async t => {
  const read = parseRegistration(wrap(`
    <service assembly="%LIB%/sub/p.js" contract="C" type="T" wsdl="\${LIB}/p.wsdl" includeExceptionDetailInFaults="True" maxConcurrentCalls="4" maxSessionPoolSize="3" prepareNodeCommandLine=" fetch  $A %B% " releaseNodeCommandLine="sweep" serviceInitializationTimeout="5000"
      serviceHostIdleTimeout="-1" serviceHangTimeout="9000" enableMessageLevelPreemption="false" stdError="$LIB/err.txt" maxMessageSize="65536" lenient="true">
      <environmentVariables><add name="A" value="1"/><add name="B" value="x=y &amp; z"/><add name="A" value="2"/></environmentVariables>
    </service>
    <host hostType="customize" exeFileName="./run.sh" arguments='--port auto "two words" ""' addressing="hpc" scheme="net.tcp"/>`, `
  <microsoft.Hpc.Broker>
    <monitor messageThrottleStartThreshold="409600" messageThrottleStopThreshold="307200" sessionIdleTimeout="0" clientIdleTimeout="7"/>
    <loadBalancing messageResendLimit="1" serviceOperationTimeout="2" endpointNotFoundRetryPeriod="10000" serviceRequestPrefetchCount="4" maxDepth="64" dispatcherCapacityInGrowShrink="2" automaticShrinkEnabled="false"/>
    <customBroker executive="./affinity.mjs" arguments="-v &quot;a b&quot;"><environmentVariables><add name="K" value="v"/></environmentVariables></customBroker>
  </microsoft.Hpc.Broker>`), file, { LIB: '/opt/lib' })
  t.strictSame(read, {
    name: 'Pricer',
    version: '1.2',
    file,
    service: {
      assembly: '/opt/lib/sub/p.js',
      contract: 'C',
      type: 'T',
      wsdl: '/opt/lib/p.wsdl',
      lenient: true,
      includeExceptionDetailInFaults: true,
      maxConcurrentCalls: 4,
      maxSessionPoolSize: 3,
      serviceInitializationTimeout: 5000,
      serviceHostIdleTimeout: -1,
      serviceHangTimeout: 9000,
      enableMessageLevelPreemption: false,
      stdError: '/opt/lib/err.txt',
      maxMessageSize: 65536,
      environmentVariables: { A: '2', B: 'x=y & z' },
      prepareNodeCommandLine: 'fetch  $A %B%', // the shell's to expand
      releaseNodeCommandLine: 'sweep'
    },
    host: { hostType: 'Customize', exeFileName: '/srv/soa/run.sh', arguments: ['--port', 'auto', 'two words', ''], addressing: 'hpc', scheme: 'net.tcp' },
    broker: {
      maxMessageSize: 65536,
      serviceInitializationTimeout: 5000,
      serviceHostIdleTimeout: -1,
      serviceHangTimeout: 9000,
      messageThrottleStartThreshold: 409600,
      messageThrottleStopThreshold: 307200,
      sessionIdleTimeout: 0,
      clientIdleTimeout: 7,
      messageResendLimit: 1,
      serviceOperationTimeout: 2,
      endpointNotFoundRetryPeriod: 10000,
      serviceRequestPrefetchCount: 4,
      maxDepth: 64,
      dispatcherCapacityInGrowShrink: 2,
      automaticShrinkEnabled: false
    },
    customBroker: { class: '', executive: '/srv/soa/affinity.mjs', arguments: ['-v', 'a b'], environmentVariables: { K: 'v' } },
    warnings: []
  })
})

t.test('registration: a program without a slash is left to PATH', async t => {
  t.equal(parseRegistration(wrap('<service/><host hostType="Customize" exeFileName="python3" arguments="f.py"/>'), file).host.exeFileName, 'python3')
})

t.test('registration: what has no effect and what nobody knows is warned about by its path', async t => {
  const { warnings } = parseRegistration(wrap('<service assembly="p.mjs" architecture="X64" sessionIdleTimout="3" MaxConcurrentCalls="3"><extra/></service><hosts/>', `
    <microsoft.Hpc.Broker><monitor statusUpdateInterval="3000" clientidletimeout="4"/><loadBalancing endpointNotFoundRetryCountLimit="10" multiEmissionDelayTime="-1"/><services><brokerServiceAddresses/></services></microsoft.Hpc.Broker>
    <microsoft.Hpc.Session><debugMode enabled="true"/></microsoft.Hpc.Session><system.serviceModel><bindings/></system.serviceModel><surprise/>`), file)
  const S = 'microsoft.Hpc.Session.ServiceRegistration'
  const expected = [
    [`${S}/hosts`, /^unknown, ignored$/],
    [`${S}/service/@MaxConcurrentCalls`, /^unknown, ignored; did you mean @maxConcurrentCalls\?$/],
    [`${S}/service/@architecture`, /^has no effect here: .*Node/],
    [`${S}/service/@sessionIdleTimout`, /^unknown, ignored$/],
    [`${S}/service/extra`, /^unknown, ignored$/],
    ['configuration/surprise', /^unknown, ignored$/],
    ['microsoft.Hpc.Broker/loadBalancing/@endpointNotFoundRetryCountLimit', /^has no effect here: HPC Pack does not use it/],
    ['microsoft.Hpc.Broker/monitor/@clientidletimeout', /^unknown, ignored; did you mean @clientIdleTimeout\?$/],
    ['microsoft.Hpc.Broker/monitor/@statusUpdateInterval', /^has no effect here: counters/],
    ['microsoft.Hpc.Broker/services', /^has no effect here: .*soa head --http/],
    ['microsoft.Hpc.Session/debugMode', /^has no effect here: /]
  ] as const
  const said = new Map(warnings.map(warning => [warning.slice(0, warning.indexOf(': ')), warning.slice(warning.indexOf(': ') + 2)]))
  t.strictSame([...said.keys()].sort(), expected.map(([path]) => path).sort())
  for (const [path, why] of expected) t.match(said.get(path), why, path)
})

t.test('registration: a variable that is not set stays as it stands, with a warning', async t => {
  const read = parseRegistration(wrap('<service assembly="/x/%NOT_SET%/p.mjs"/>'), file)
  t.equal(read.service.assembly, '/x/%NOT_SET%/p.mjs')
  t.strictSame(read.warnings, ['microsoft.Hpc.Session.ServiceRegistration/service/@assembly: environment variable NOT_SET is not set here'])
})

t.test('registration: a value of the wrong type is refused with attribute and value', async t => {
  t.match(refusal(wrap('<service assembly="a.js" maxConcurrentCalls="four"/>')), /^service registration \/srv\/soa\/Pricer_1\.2\.config: .*\/service\/@maxConcurrentCalls: a whole number, 0 or more, not "four"$/)
  t.match(refusal(wrap('<service assembly="a.js" includeExceptionDetailInFaults="ja"/>')), /@includeExceptionDetailInFaults: true or false, not "ja"/)
  t.match(refusal(wrap('<service assembly="a.js"/><host hostType="Magic"/>')), /host\/@hostType: one of Standard, Customize, None, not "Magic"/)
  t.match(refusal(wrap('<service assembly="a.js"><environmentVariables><add name="" value="x"/></environmentVariables></service>')), /add\[1\]\/@name: the name of an environment variable, not ""/)
  t.match(refusal(wrap(plain + plain)), /service is there 2 times/)
  const broker = (attributes: string): string => wrap(plain, `<microsoft.Hpc.Broker><loadBalancing ${attributes}/></microsoft.Hpc.Broker>`)
  t.equal(refusal(broker('serviceOperationTimeout="0"')), 'service registration /srv/soa/Pricer_1.2.config: microsoft.Hpc.Broker/loadBalancing/@serviceOperationTimeout: a whole number of ms, 1 or more, not "0"')
  t.match(refusal(broker('messageResendLimit="x"')), /@messageResendLimit: a whole number of tries, 0 or more, not "x"/)
})

t.test('registration: a .NET library is refused with the way to run it, unless an executable takes it', async t => {
  t.match(refusal(wrap('<service assembly="bin\\EchoSvc.dll"/>')), /bin\/EchoSvc\.dll is a \.NET program.*\.NET host sample/)
  t.equal(parseRegistration(wrap('<service assembly="bin\\EchoSvc.dll"/><host hostType="Customize" exeFileName="./host"/>'), file).service.assembly, '/srv/soa/bin/EchoSvc.dll')
})

t.test('registration: files that are not a registration are refused', async t => {
  t.match(refusal(''), /root element is not <configuration>|no well-formed XML/)
  t.match(refusal('<configuration><a></configuration>'), /no well-formed XML: .*a/)
  t.match(refusal('<other/>'), /root element is not <configuration>/)
  t.match(refusal('<configuration/>'), /has no microsoft\.Hpc\.Session\.ServiceRegistration\/service/)
  t.match(refusal(wrap('<service contract="X"/>')), /@assembly is missing/)
  t.match(refusal(wrap('<service/><host hostType="Customize"/>')), /no exeFileName/)
  t.match(refusal(wrap(plain) + ' '.repeat(1_048_576)), /bytes, the limit is 1048576/)
  t.match(refusal('<configuration>text</configuration>'), /has no/)
})

t.test('registration: a document type declaration is refused before anything is parsed', async t => {
  t.match(refusal(wrap(plain, '', '<!DOCTYPE c [<!ENTITY x SYSTEM "file:///etc/passwd">]>')), /document type declaration/)
  t.match(refusal(wrap(plain, '', '<!doctype c>')), /no well-formed XML: line 1, column 9/)
  t.match(refusal('<!-- ok --><!DOCTYPE c><configuration/>'), /document type declaration/)
  t.equal(parseRegistration(wrap(plain, '<!-- <!DOCTYPE c> -->'), file).name, 'Pricer', 'in a comment it is only text')
  t.match(refusal(wrap('<service assembly="&xxe;"/>')), /no well-formed XML/)
})

t.test('registration: what two readers would read differently is refused', async t => {
  t.match(refusal(wrap('<service assembly="a.js" assembly="b.js"/>')), /no well-formed XML: line 3, column \d+: .*duplicate attribute/)
  t.match(refusal(wrap('<service configSource="service.config"/>')), /service\/@configSource: a section in another file is not read; put it in here/)
  t.match(refusal(wrap('<service configProtectionProvider="RsaProtectedConfigurationProvider"><EncryptedData/></service>')), /@configProtectionProvider: an encrypted section cannot be read/)
  t.match(refusal(wrap(plain, '<microsoft.Hpc.Broker/><microsoft.Hpc.Broker/>')), /configuration\/microsoft\.Hpc\.Broker is there 2 times/)
  t.match(refusal(wrap(plain, '<microsoft.Hpc.Broker><monitor/><monitor/></microsoft.Hpc.Broker>')), /microsoft\.Hpc\.Broker\/monitor is there 2 times/)
})

const bindings = (inside: string, service = plain): string => wrap(service, `<system.serviceModel><bindings>${inside}</bindings></system.serviceModel>`)
t.test('registration: bindings that HPC Pack looks up by name set limits, others do not', async t => {
  const backEnd = '<netTcpBinding><binding name="Microsoft.Hpc.BackEndBinding" maxReceivedMessageSize="200000"><readerQuotas maxDepth="64"/><security mode="None"/></binding></netTcpBinding>'
  const http = '<basicHttpBinding><binding name="Microsoft.Hpc.UnsecureHttpBrokerBinding" maxReceivedMessageSize="300000"/></basicHttpBinding>'
  const read = parseRegistration(bindings(backEnd + http), file)
  t.strictSame([read.broker, read.warnings], [{ maxMessageSize: 300_000, maxDepth: 64 }, []], 'the largest counts')
  t.strictSame(parseRegistration(bindings(backEnd, '<service assembly="a.js" maxMessageSize="1000"/>'), file).broker, { maxMessageSize: 1000, maxDepth: 64 }, 'the service\'s own word goes over it')

  const { broker, warnings } = parseRegistration(bindings('<netTcpBinding><binding name="Microsoft.Hpc.BackEndBinding" maxReceivedMessageSize="2147483647" maxBufferSize="1"><readerQuotas maxDepth="2147483647" maxArrayLength="5"/><security mode="Transport"/></binding><binding name="mine" maxReceivedMessageSize="5"/></netTcpBinding>'), file)
  t.strictSame(broker, { maxMessageSize: 1_073_741_824, maxDepth: 1000 })
  const B = 'system.serviceModel/bindings/netTcpBinding/binding'
  for (const says of [`${B}[1]/@maxReceivedMessageSize: 2147483647 is more than 1073741824, the most here`, `${B}[1]/readerQuotas/@maxDepth: 2147483647 is more than 1000`, `${B}[1]/readerQuotas/@maxArrayLength: has no effect here: maxMessageSize`, `${B}[1]/security: has no effect here: what secures connections`, `${B}[1]/@maxBufferSize: has no effect`, `${B}[2]: binding mine has no effect here`]) {
    t.ok(warnings.some(warning => warning.startsWith(says)), says)
  }
  t.equal(warnings.length, 6)
  t.match(refusal(bindings('<netTcpBinding><binding name="Microsoft.Hpc.BackEndBinding" maxReceivedMessageSize="big"/></netTcpBinding>')), /binding\[1\]\/@maxReceivedMessageSize: a whole number, 0 or more, not "big"/)
})

t.test('registration: a size beyond what there is becomes the most that there is, with a warning', async t => {
  const read = parseRegistration(wrap('<service assembly="a.js" maxMessageSize="2147483647"/>'), file)
  t.equal(read.broker.maxMessageSize, 1_073_741_824)
  t.match(read.warnings, [/service\/@maxMessageSize: 2147483647 is more than 1073741824, the most here, which is taken instead/])
  t.match(refusal(wrap('<service assembly="a.js" maxMessageSize="100"/>')), /@maxMessageSize: a whole number of bytes, 512 to 1073741824, not 100/)
})

t.test('registration: a broker address is warned about, and refused if it is none', async t => {
  const address = (said: string): string => wrap(plain, `<microsoft.Hpc.Broker><services><brokerServiceAddresses><add baseAddress="${said}"/></brokerServiceAddresses></services></microsoft.Hpc.Broker>`)
  t.match(parseRegistration(address('net.tcp://localhost:9091/Broker'), file).warnings, [/microsoft\.Hpc\.Broker\/services: has no effect here/])
  t.equal(refusal(address('localhost Broker')), 'service registration /srv/soa/Pricer_1.2.config: microsoft.Hpc.Broker/services/brokerServiceAddresses/add[1]/@baseAddress: a URI, not "localhost Broker"')
})

t.test('registration: comments without an end do not cost quadratic time', async t => {
  const xml = '<configuration>' + '<!-- '.repeat(200_000)
  t.match(refusal(xml), /no well-formed XML/)
})

t.test('registration: element names of JavaScript\'s own do no harm', async t => {
  const { warnings } = parseRegistration(wrap(plain, '<__proto__ polluted="1"/><constructor/><toString/>'), file)
  t.equal(({} as { polluted?: string }).polluted, undefined)
  t.ok(warnings.includes('configuration/constructor: unknown, ignored'))
})
