import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createClientAsync } from 'soap'
import t from 'tap'
import { call, ground } from '../head/head-rig.ts'
import { needsRedis } from '../redis-server.ts'
import { vectors } from '../wsdl/cases.ts'
import { CHAMELEON, SPLIT } from '../wsdl/many.ts'

const PYTHON = '/usr/bin/python3'
const probe = spawnSync(PYTHON, ['-c', 'import zeep; print(zeep.__version__)'], { encoding: 'utf8' })
const hasZeep = probe.status === 0

/** zeep with no options, one process for all. Prints what it finds: for each URL its ports and the text of each operation's arguments. */
const PROGRAM = `
import json, re, sys, zeep
from zeep.exceptions import Fault
found = {'loaded': {}, 'types': {}, 'said': {}}
asked = json.load(sys.stdin)
for url in asked['urls']:
    client = zeep.Client(url)
    found['loaded'][url] = [
        [type(port.binding).__name__, port.binding_options['address'], sorted(o.name + '(' + re.sub(r'\\bns\\d+:', '', o.input.signature(as_output=False)) + ')' for o in port.binding._operations.values())]
        for service in client.wsdl.services.values() for port in service.ports.values()]
    found['types'][url] = sorted(str(type.qname) for type in client.wsdl.types.types)
head, session = asked['head'], asked['session']
for binding in ('Soap11', 'Soap12'):
    def of(url, port):
        client = zeep.Client(url)
        return client, client.bind(list(client.wsdl.services)[0], port + '_' + binding)
    said = found['said'][binding] = {}
    client, launcher = of(head + '/SessionLauncher?wsdl', 'ISessionLauncher')
    said['version'] = launcher.GetServerVersion()['_Major']
    said['cluster'] = launcher.GetClusterInfo()['ClusterName']
    said['configurations'] = [(p['Key'], p['Value']) for p in launcher.GetSOAConfigurations({'string': ['TaskCancelGracePeriod', 'Nothing']})]
    start = client.get_type('{http://hpc.microsoft.com/}SessionStartInfoContract')
    allocated = launcher.AllocateDurable(start(ServiceName='calc-flat', Secure=False, MaxUnits=2, TransportScheme=['Http'], Runtime=-1), 'https://')
    said['launcher'] = allocated['BrokerLauncherEpr']['string']
    _, broker = of(head + '/BrokerLauncher?singleWsdl', 'IBrokerLauncher')
    created = broker.CreateDurable(start(ServiceName='calc-flat', Secure=False, TransportScheme=['Http'], Runtime=-1), allocated['Id'])
    said['http'] = created['BrokerEpr']['string'][1] == head + '/' + allocated['Id'] + '/Http'
    said['ping'] = broker.PingBroker2(allocated['Id']) == created['BrokerUniqueId']
    said['state'] = launcher.GetInfo('https://', allocated['Id'])['JobState']
    _, controller = of(created['ControllerEpr']['string'][1] + '?wsdl', 'IBrokerController')
    said['status'] = controller.GetBrokerClientStatus('c')
    said['count'] = controller.GetRequestsCount('c')
    said['nothing'] = controller.Ping()
    try:
        controller.Flush(1, 'not/an/id', -1, -1, 1000)
    except Fault as fault:
        detail = fault.detail[0] if fault.detail is not None else None
        said['fault'] = [str(fault.message), detail.tag, detail[0].text]
    said['closed'] = broker.Close(allocated['Id'])
    try:
        broker.Attach(allocated['Id'])
    except Fault as fault:
        said['gone'] = str(fault.message)
json.dump(found, sys.stdout)
`

/** What the program prints: ports by binding, address and operations; names of types; answers by binding. */
interface Found { loaded: Record<string, Array<[string, string, string[]]>>, types: Record<string, string[]>, said: Record<string, Record<string, unknown>> }

t.setTimeout(300_000)

t.test('wsdl: every served WSDL loads in foreign toolkits with no options, split and flat, and has a port for each version of SOAP', { ...needsRedis, timeout: 280_000 }, async t => {
  const place = await ground(t)
  const services = join(place.dir, 'interop')
  mkdirSync(services)
  const register = (name: string, wsdl: string): void => writeFileSync(join(services, `${name}.config`), `<configuration><microsoft.Hpc.Session.ServiceRegistration><service wsdl="${wsdl}"/><host hostType="Customize" exeFileName="/bin/true"/></microsoft.Hpc.Session.ServiceRegistration></configuration>`)
  const names: string[] = []
  for (const name of readdirSync(join(vectors, 'wsdl'))) {
    for (const form of ['split', 'flat']) { register(`${name}-${form}`, join(vectors, 'wsdl', name, `${form}.wsdl`)); names.push(`${name}-${form}`) }
  }
  // Files as a developer has them: imports of WSDLs, includes without namespace.
  for (const [name, files, main] of [['shop', SPLIT, 'service.wsdl'], ['chameleon', CHAMELEON, 'w.wsdl']] as const) {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(services, name, path, '..'), { recursive: true })
      writeFileSync(join(services, name, path), text)
    }
    register(name, join(services, name, main))
    names.push(name)
  }
  const head = await place.head({ workerPoolSize: 0, sessionsPerWorker: 100, logLevel: 'silent' }, { workerProgram: undefined, services: [services] })
  const sessions = await Promise.all(names.map(async service => (await call(head, 'POST', 'sessions', { service })).body as { sessionId: string }))
  const endpoints = sessions.map(({ sessionId }) => `${head.http}/${sessionId}/Http`)
  const queries = endpoints.flatMap(endpoint => [`${endpoint}?wsdl`, `${endpoint}?singleWsdl`])

  await t.test('wsdl: zeep', { skip: hasZeep ? false : `zeep is not installed for ${PYTHON} (Debian: python3-zeep)` }, async t => {
    const own = [`${endpoints[0] as string}/Controller`, `${head.http}/SessionLauncher`, `${head.http}/BrokerLauncher`].flatMap(endpoint => [`${endpoint}?wsdl`, `${endpoint}?singleWsdl`])
    const running = promisify(execFile)(PYTHON, ['-c', PROGRAM], { timeout: 100_000, maxBuffer: 64 * 1024 * 1024 })
    running.child.stdin?.end(JSON.stringify({ urls: [...queries, ...own], head: head.http, session: endpoints[0] }))
    const { loaded, types, said } = JSON.parse((await running).stdout) as Found
    for (const url of [...queries, ...own]) {
      const ports = loaded[url] ?? []
      t.strictSame(ports.map(([binding, address]) => [binding, address]), [['Soap11Binding', url.slice(0, url.indexOf('?'))], ['Soap12Binding', url.slice(0, url.indexOf('?'))]], url)
      t.ok((ports[0]?.[2].length ?? 0) > 0 && ports[0]?.[2].join() === ports[1]?.[2].join(), `${url}: the same operations at both`)
    }
    for (const endpoint of endpoints) {
      const seen = (query: string): unknown => [loaded[`${endpoint}?${query}`]?.map(([, , operations]) => operations), types[`${endpoint}?${query}`]]
      t.strictSame(seen('wsdl'), seen('singleWsdl'), `${endpoint}: both mean the same to it`)
    }
    for (const binding of ['Soap11', 'Soap12']) {
      t.match(said[binding], {
        version: 5,
        cluster: 'soa',
        configurations: [['TaskCancelGracePeriod', '15'], ['Nothing', null]],
        http: true,
        ping: true,
        state: 'Running',
        status: 'Ready',
        count: 0,
        nothing: null,
        fault: [/client id/, '{http://hpc.microsoft.com/session/}SessionFault', String(0x03000016)],
        closed: null,
        gone: /is not the id of a session here/
      }, binding)
    }
  })

  await t.test('wsdl: node-soap', async t => {
    for (const url of [...queries, `${endpoints[0] as string}/Controller?wsdl`, `${head.http}/SessionLauncher?wsdl`, `${head.http}/BrokerLauncher?singleWsdl`]) {
      const client = await createClientAsync(url, { disableCache: true })
      const described = Object.values(client.describe() as Record<string, Record<string, object>>)[0] ?? {}
      const operations = Object.values(described).map(port => Object.keys(port).sort().join())
      t.ok(operations.length === 2 && operations[0] !== '' && operations[0] === operations[1], `${url}: ${JSON.stringify(operations)}`)
    }
  })

  for (const { sessionId } of sessions) await call(head, 'DELETE', `sessions/${sessionId}`)
})
