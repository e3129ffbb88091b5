import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { DurableSession, RetryOperationError, type Response } from '../../client/index.ts'
import { Cluster, eventually } from '../e2e/cluster.ts'
import { echoWsdl, registration, servicesFolder } from './services.ts'

const built = (path: string): string => JSON.stringify(new URL(`../../${path}`, import.meta.url).href)

/**
 * Stands in for a WCF service host: net.tcp at HPC Pack's address, one call at a time, HPC Pack's faults as its own host words them, and IHpcServiceHost beside it.
 * What it does is said by the first word of `style`; of what only the first host does that is asked, `notes/` keeps who that was.
 */
const HOST = `#!${process.execPath}
import { mkdirSync, writeFileSync } from 'node:fs'
import { listenTcp } from ${built('transport/tcp/listener.js')}
import { reply } from ${built('transport/answering.js')}
import { withTextBody } from ${built('wire/soap/body-form.js')}
import { silent } from ${built('core/log.js')}

const url = new URL(process.env.SOA_LISTEN_URL)
const task = process.env.CCP_TASKINSTANCEID
const limits = { maxMessageSize: 1 << 20, maxHeaderBytes: 65536, maxDepth: 64 }
const SOAP = 'http://www.w3.org/2003/05/soap-envelope', SESSION = 'http://hpc.microsoft.com/session/', HPC = 'http://www.microsoft.com/hpc'
const message = (action, body, otherHeaders = []) => ({ v: 1, soap: 12, enc: 'utf8', action, otherHeaders, prefixesInScope: [], body: Buffer.from(body) })
const fault = (action, subcode, detail) => message(action, '<f:Fault xmlns:f="' + SOAP + '"><f:Code><f:Value>f:Receiver</f:Value><f:Subcode><f:Value xmlns:h="' + HPC + '">h:' + subcode + '</f:Value></f:Subcode></f:Code>' +
  '<f:Reason><f:Text xml:lang="en-US">' + subcode + '</f:Text></f:Reason><f:Detail>' + detail + '</f:Detail></f:Fault>')
const sessionFault = (code, subcode, item) => fault(SESSION + 'SessionFault', subcode, '<SessionFault xmlns="' + SESSION + '" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><Code>' + code + '</Code>' +
  '<Context xmlns:a="http://schemas.microsoft.com/2003/10/Serialization/Arrays"><a:anyType i:type="b:string" xmlns:b="http://www.w3.org/2001/XMLSchema">' + item + '</a:anyType></Context><Reason>' + subcode + '</Reason></SessionFault>')
const first = what => { try { mkdirSync('notes/' + what); return true } catch { return false } }
let most = 0, open = 0, mostOpen = 0
const tries = new Map()

function answer (style, id) {
  const [what] = style.split(' ')
  const tried = (tries.get(id) ?? 0) + 1
  tries.set(id, tried)
  if ((what === 'again' && tried === 1) || what === 'never') return fault(SESSION + 'RetryOperationError', 'RetryOperation', '<RetryOperationError xmlns="' + SESSION + '"><lastFailedServiceId/><reason>busy, says the host</reason><retryCount>0</retryCount></RetryOperationError>')
  if (what === 'preempt' && first('preempt')) return sessionFault(0x03000024, 'Service_Preempted', '0')
  if (what === 'unloaded' && first('unloaded')) return sessionFault(0x04000004, 'ServiceHostInitializationFailed', 'no such assembly')
  if (what === 'crash') return fault('urn:Foreign/Crash', 'Crash', '<crash xmlns="urn:Foreign"/>')
  const headers = what === 'leave' && first('leave') ? [Buffer.from('<preemption xmlns="' + HPC + '">0</preemption>')] : []
  return message('urn:Foreign/EchoResponse', '<EchoResponse xmlns="urn:Foreign"><style>' + [style, task, tried, most, mostOpen].join('|') + '</style></EchoResponse>', headers)
}
const service = {
  limits,
  open (channel) {
    let inFlight = 0
    mostOpen = Math.max(mostOpen, ++open)
    return {
      closed () { open-- },
      async message (reading) {
        most = Math.max(most, ++inFlight)
        await new Promise(resolve => setTimeout(resolve, 5)) // so that another call on this connection would be seen
        inFlight--
        const { body } = withTextBody(reading.envelope)
        await reply(channel, reading, answer(/style[^>]*>([^<]*)</.exec(body.toString())[1], reading.envelope.messageId))
      }
    }
  }
}
const controller = {
  limits,
  open: ({ path }) => ({
    async message ({ envelope, replyTo, bodyElement }) {
      writeFileSync('notes/exit-' + task + '.json', JSON.stringify({ action: envelope.action, messageId: envelope.messageId ?? null, replyTo: replyTo ?? null, bodyElement, path }))
      process.exit(0)
    }
  })
}
await listenTcp({ listen: { host: url.hostname, port: Number(url.port) }, route: path => path === url.pathname ? service : path === url.pathname + '/controller' ? controller : undefined, log: silent })
process.on('SIGTERM', () => process.exit(0))
`

t.setTimeout(120_000)

t.test('a service host of another make at net.tcp://…/_defaultEndpoint', async t => {
  const services = servicesFolder(t, {
    Foreign: { 'host.mjs': HOST, 'Foreign.wsdl': echoWsdl('Foreign', '<xs:element name="style" type="xs:string"/>'), 'Foreign.config': registration('<service contract="Foreign" maxConcurrentCalls="4"/>', '<host hostType="Customize" scheme="net.tcp" exeFileName="./host.mjs"/>') }
  })
  const notes = join(asset(services), 'Foreign', 'notes')
  mkdirSync(notes)
  const cluster = await Cluster.start(t, { services, cores: 4 })
  const create = (units: number): Promise<DurableSession> => DurableSession.create({ service: 'Foreign', head: cluster.head, minUnits: units, maxUnits: units, settings: { messageResendLimit: 2 } })
  /** Sends and reads; the answers by what was sent, taken apart: style, task, tries that this host saw, most calls at once on one connection, most connections at once. */
  const run = async (session: DurableSession, clientId: string, styles: readonly string[]) => {
    const client = session.client(clientId)
    for (const style of styles) await client.send('Echo', { style }, { userData: style })
    await client.endRequests()
    const responses = new Map<string, Response>()
    for await (const response of client.responses()) responses.set(response.userData, response)
    t.equal(responses.size, styles.length, `${clientId}: one response for each request`)
    return (style: string) => {
      const response = responses.get(style) as Response
      const [said = '', task = '', tries = '', most = '', mostOpen = ''] = response.fault === undefined ? (response.result() as { style: string }).style.split('|') : []
      return { fault: response.fault, said, task, tries: Number(tries), most: Number(most), mostOpen: Number(mostOpen) }
    }
  }
  const many = (word: string): string[] => Array.from({ length: 40 }, (_, i) => `${word} ${i}`)

  await t.test('replies, its own faults, RetryOperationError; one call on each connection', async t => {
    const session = await create(1)
    const of = await run(session, 'plain', [...many('hello'), 'again', 'never', 'crash'])
    for (const style of many('hello')) t.match(of(style), { said: style, tries: 1, most: 1 }, style)
    t.ok(many('hello').some(style => of(style).mostOpen > 1), 'several calls at once are on connections of their own')
    t.match(of('again'), { said: 'again', tries: 2 }, 'what asks for a retry is tried again')
    const { fault } = of('never')
    t.type(fault, RetryOperationError)
    t.match(fault, { retryCount: 3, reason: /busy, says the host/, lastFailedServiceId: of('again').task }, 'up to messageResendLimit')
    t.match(of('crash').fault, { subcode: /Crash/, detail: /<crash/ }, 'any other fault is a response, and is not tried again')
    await session.close()
  })

  for (const [word, says] of [['preempt', 'Service_Preempted'], ['unloaded', 'Service_InitializeFailed']] as const) {
    await t.test(`${says}: the request runs elsewhere and costs no try; that host gets no more`, async t => {
      const session = await create(2)
      const of = await run(session, word, [word, ...many('hello')])
      const { task, tries } = of(word)
      t.equal(tries, 1, 'this host saw it once')
      const later = await run(session, `${word} later`, many('later'))
      t.same(new Set(many('later').map(style => later(style).task)), new Set([task]), 'only the other one is left')
      await session.close()
    })
  }

  await t.test('the preemption header: its reply is stored, and that host gets no more', async t => {
    const session = await create(2)
    const of = await run(session, 'leave', ['leave'])
    const { said, task } = of('leave')
    t.equal(said, 'leave')
    const later = await run(session, 'leave later', many('later'))
    t.notOk(many('later').some(style => later(style).task === task))
    await session.close()
  })

  await t.test('Exit: one-way, by its own action, at the controller', async t => {
    const session = await DurableSession.create({ service: 'Foreign', head: cluster.head, maxUnits: 1, settings: { unitIdleTimeoutMs: 300 } })
    const of = await run(session, 'idle', ['hello'])
    const { task } = of('hello')
    await eventually('the host has been told', () => readdirSync(notes).includes(`exit-${task}.json`))
    t.match(JSON.parse(readFileSync(join(notes, `exit-${task}.json`), 'utf8')), {
      action: 'http://hpc.microsoft.com/hpcservicehost/exit', messageId: null, replyTo: null, bodyElement: '{http://hpc.microsoft.com/hpcservicehost/}Exit', path: `/${session.id}/${task}/_defaultEndpoint/controller`
    })
    await eventually('it has left', async () => (await cluster.session(session.id)).tasks.every(one => one.state !== 'Running'))
    await session.close()
  })
})
