/** Every row of HPC Pack's file, one file each: what is used changes what is read, what is not is named in a warning. */
import t from 'tap'
import { BROKER, REGISTRATION, REGISTRATION_TABLE, SERVICE_MODEL, SESSION, registrationRow } from '../../config/registration-table.ts'
import { parseRegistration } from '../../config/service-registration.ts'

/** [broker-behaviour] 6.1 to 6.9, by hand: the table may have more, never less. */
const SPEC: ReadonlyArray<readonly [path: string, names: string]> = [
  ['configuration', `configSections ${REGISTRATION} ${BROKER} ${SESSION} system.serviceModel system.diagnostics`],
  [REGISTRATION, 'service host'],
  [`${REGISTRATION}/service`, `@assembly @contract @type @includeExceptionDetailInFaults @maxConcurrentCalls @serviceInitializationTimeout @serviceHostIdleTimeout @serviceHangTimeout
    @enableMessageLevelPreemption @architecture @stdError @maxMessageSize @maxSessionPoolSize @prepareNodeCommandLine @releaseNodeCommandLine @soaDiagTraceLevel environmentVariables`],
  [`${REGISTRATION}/service/environmentVariables/add`, '@name @value'],
  [`${REGISTRATION}/host`, '@hostType @exeFileName'],
  [BROKER, 'monitor services loadBalancing customBroker'],
  [`${BROKER}/monitor`, `@loadSamplingInterval @allocationAdjustInterval @clientIdleTimeout @clientConnectionTimeout @sessionIdleTimeout @statusUpdateInterval @messageThrottleStartThreshold
    @messageThrottleStopThreshold @clientBrokerHeartbeatInterval @clientBrokerHeartbeatRetryCount @allocationGrowLoadRatioThreshold @allocationShrinkLoadRatioThreshold`],
  [`${BROKER}/services/brokerServiceAddresses/add`, '@baseAddress'],
  [`${BROKER}/loadBalancing`, `@messageResendLimit @multiEmissionDelayTime @serviceOperationTimeout @endpointNotFoundRetryCountLimit @endpointNotFoundRetryPeriod @serviceRequestPrefetchCount
    @maxConnectionCountPerAzureProxy @dispatcherCapacityInGrowShrink`],
  [`${BROKER}/customBroker`, '@executive environmentVariables'],
  [`${SESSION}/debugMode`, '@enabled eprList'],
  [`${SERVICE_MODEL}/bindings/*/binding`, '@name @maxReceivedMessageSize @closeTimeout @maxConnections @portSharingEnabled readerQuotas security']
]

t.test('registration table: every element and attribute of HPC Pack\'s file has a row that says what it does', async t => {
  for (const [path, names] of SPEC) for (const name of names.split(/\s+/)) t.ok(registrationRow(path, name), `${path}/${name}`)
  for (const [path, rows] of Object.entries(REGISTRATION_TABLE)) {
    for (const [name, { does, says }] of Object.entries(rows)) if (does === 'warned') t.ok(says.length > 5, `${path}/${name} says why`)
  }
})

/** Values that are not the default, for rows whose type does not give one. */
const VALUES: Readonly<Record<string, string>> = {
  [`${REGISTRATION}/service/@assembly`]: 'other.mjs',
  [`${REGISTRATION}/host/@hostType`]: 'Customize" exeFileName="x',
  [`${REGISTRATION}/host/@exeFileName`]: 'y" hostType="Customize',
  [`${REGISTRATION}/host/@addressing`]: 'hpc',
  [`${REGISTRATION}/host/@scheme`]: 'net.tcp',
  [`${BROKER}/monitor/@messageThrottleStopThreshold`]: '5',
  [`${BROKER}/services/brokerServiceAddresses/add/@baseAddress`]: 'http://localhost/Broker',
  [`${SERVICE_MODEL}/bindings/*/binding/@name`]: 'Microsoft.Hpc.BackEndBinding" maxReceivedMessageSize="70000',
}
const valueOf = (place: string, takes: string, fallback: string): string => VALUES[place] ?? (takes === 'true, false' ? String(fallback !== 'true') : ['text', 'path'].includes(takes) ? 'x' : '777')

/** A file with this one place; the elements around it are there, with what they cannot do without. */
function fileWith (path: string, at: string, value: string): string {
  const steps = path === 'configuration' ? [] : path.split('/').map(step => step === '*' ? 'netTcpBinding' : step)
  const tree: Record<string, { attributes: string, inside: string[] }> = {}
  const need = (key: string, attributes = ''): { attributes: string, inside: string[] } => (tree[key] ??= { attributes, inside: [] })
  need('')
  for (let i = 1; i <= steps.length; i++) {
    const key = steps.slice(0, i).join('/')
    const isNamed = steps[i - 1] === 'binding' && at !== '@name'
    if (!tree[key]) need(steps.slice(0, i - 1).join('/')).inside.push(key)
    need(key, isNamed ? ' name="Microsoft.Hpc.BackEndBinding"' : steps[i - 1] === 'add' && path.endsWith('environmentVariables/add') && at === '@value' ? ' name="V"' : '')
  }
  const here = need(steps.join('/'))
  if (at.startsWith('@')) here.attributes += ` ${at.slice(1)}="${value}"`
  const service = '<service assembly="a.mjs"/>'
  const write = (key: string): string => {
    const { attributes, inside } = tree[key] as { attributes: string, inside: string[] }
    const name = key.slice(key.lastIndexOf('/') + 1)
    const more = name === 'service' && !attributes.includes('assembly=') ? ' assembly="a.mjs"' : name === 'customBroker' && !/class=|executive=/.test(attributes) ? ' executive="x"' : ''
    return `<${name}${attributes}${more}>${inside.map(write).join('')}${key === steps.join('/') && !at.startsWith('@') ? at === 'service' ? service : at === 'add' ? `<add ${path.includes('environment') ? 'name="V"' : 'baseAddress="http://x/"'}/>` : at === 'customBroker' ? '<customBroker executive="x"/>' : `<${at}/>` : ''}</${name}>`
  }
  const written = (tree[''] as { inside: string[] }).inside.map(write).join('')
  const rest = /<service[ >]/.test(written) ? '' : written.startsWith(`<${REGISTRATION}`) ? service : `<${REGISTRATION}>${service}</${REGISTRATION}>`
  const whole = written.startsWith(`<${REGISTRATION}`) ? written.replace(new RegExp(`</${REGISTRATION}>$`), `${rest}</${REGISTRATION}>`) : rest + written
  return `<configuration>${whole}${path === 'configuration' && at !== REGISTRATION ? `<${at}/>` : ''}</configuration>`
}

const FILE = '/srv/soa/A.config'
const base = parseRegistration(`<configuration><${REGISTRATION}><service assembly="a.mjs"/></${REGISTRATION}></configuration>`, FILE)

t.test('registration table: what is used changes what is read, without a warning; what is not used is named in one', async t => {
  let [used, warned] = [0, 0]
  for (const [path, rows] of Object.entries(REGISTRATION_TABLE)) {
    for (const [at, { does, takes, default: fallback }] of Object.entries(rows)) {
      const place = `${path}/${at}`
      const xml = fileWith(path, at, valueOf(place, takes, fallback))
      const { warnings, ...read } = parseRegistration(xml, FILE)
      const { warnings: _, ...before } = base
      if (does === 'warned') {
        warned++
        // An element that is warned about speaks for all that is in it.
        const places = place.replace('/*/', '/netTcpBinding/').split('/').map((_, i, steps) => steps.slice(0, i + 1).join('/'))
        t.ok(warnings.some(warning => places.some(one => warning.replace(/\[\d+\]/g, '').startsWith(`${one}: has no effect here: `))), `${place} is warned about: ${warnings.join('; ')}`)
      } else {
        t.same(warnings, [], `${place}: no warning`)
      }
      if (does === 'used' && at.startsWith('@')) {
        used++
        t.notSame(read, before, `${place} changes what is read: ${xml}`)
      }
    }
  }
  t.ok(used > 40 && warned > 30, `${used} used, ${warned} warned about`)
})

t.test('registration table: any session setting may stand in monitor and loadBalancing', async t => {
  const read = parseRegistration(`<configuration><${REGISTRATION}><service assembly="a.mjs"/></${REGISTRATION}><${BROKER}><monitor maxDepth="99"/><loadBalancing maxSessionBytes="7" clientIdleTimeout="8"/></${BROKER}></configuration>`, FILE)
  t.strictSame([read.broker, read.warnings], [{ maxDepth: 99, maxSessionBytes: 7, clientIdleTimeout: 8 }, []])
})
