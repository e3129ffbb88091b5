import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { HOOKS, type CustomSession, type CustomState, type Hook } from '../../broker/custom-broker.ts'
import { openScript } from './custom-programs.ts'

interface Example { sent: Record<string, never>, answer: { result?: unknown, state?: { set?: Record<string, unknown>, delete?: string[] } } }

/** The JSON blocks of docs/custom-broker-programs.md, by the heading that they stand under. */
const page = readFileSync(asset('docs/custom-broker-programs.md'), 'utf8')
const blocks = new Map([...page.matchAll(/^### (?:GET \/|(\w+))\n([^]*?)(?=^##)/gm)].map(([, hook = 'GET', text = '']) => [hook, [...text.matchAll(/^```json\n([^]*?)^```$/gm)].map(([, json = '']) => JSON.parse(json) as never)]))
const exampleOf = (hook: Hook): Example => { const [sent, answer] = blocks.get(hook) ?? []; return { sent: sent as never, answer: answer as never } }

t.test('the page: every hook has what is sent and what is answered, and no block is left over', t => {
  t.same([...blocks].map(([heading, { length }]) => [heading, length]), [['GET', 1], ...HOOKS.map(hook => [hook, 2])])
  t.equal([...page.matchAll(/^```json$/gm)].length, 1 + 2 * HOOKS.length)
  t.end()
})

t.test('the page: what it says is sent is what a program gets, and what it says is answered does what it says', async t => {
  const start = exampleOf('onSessionStart').sent as unknown as { session: { id: string, service: string, isDurable: boolean, settings: Record<string, unknown> }, state: Record<string, unknown>, dispatchers: CustomSession['dispatchers'] }
  const program = await openScript(t, `const page = ${JSON.stringify(Object.fromEntries(blocks))}
    let sent = []
    serve(Object.fromEntries(page.GET[0].hooks.map(hook => [hook, body => { sent.push([hook, body]); writeFileSync('sent', JSON.stringify(sent)); return page[hook][1] }])), page.GET[0])`)
  const changes: string[] = []
  const state: CustomState = {
    get: key => start.state[key],
    has: key => key in start.state,
    keys: () => Object.keys(start.state),
    size: 1,
    set: (key, value) => { changes.push(`${key}=${JSON.stringify(value)}`) },
    delete: key => { changes.push(`-${key}`); return true },
  }
  let { dispatchers } = start
  const session = { ...start.session, signal: new AbortController().signal, state, get dispatchers () { return dispatchers } } as unknown as CustomSession
  const { broker, chooseMany } = program
  const given = new Map<Hook, unknown>()
  const sent = (hook: Hook): never => exampleOf(hook).sent as never
  const { request, response } = sent('onResponse') as { request: never, response: never }
  const gather = sent('onGather') as { request: never, parts: never[] }
  const choose = sent('chooseDispatcher') as { requests: never[], dispatchers: CustomSession['dispatchers'] }
  given.set('onSessionStart', await broker.onSessionStart?.(session))
  given.set('onRequest', await broker.onRequest?.((sent('onRequest') as { request: never }).request, session))
  dispatchers = choose.dispatchers
  given.set('chooseDispatcher', await chooseMany?.(choose.requests))
  given.set('onTaskStateChanged', await broker.onTaskStateChanged?.((sent('onTaskStateChanged') as { tasks: never }).tasks))
  given.set('onJobStateChanged', await broker.onJobStateChanged?.((sent('onJobStateChanged') as { state: never }).state))
  given.set('onResponse', await broker.onResponse?.(request, response, session))
  given.set('onGather', await broker.onGather?.(gather.request, gather.parts, session))
  given.set('onSessionEnd', await broker.onSessionEnd?.((sent('onSessionEnd') as { why: never }).why))

  for (const [hook, body] of JSON.parse(readFileSync(join(program.folder, 'sent'), 'utf8')) as Array<[Hook, typeof start]>) {
    const { settings } = body.session ?? { settings: {} }
    if (hook === 'onSessionStart') t.match(settings, start.session.settings, 'the settings that the page shows, among all')
    t.strictSame(hook === 'onSessionStart' ? { ...body, session: { ...body.session, settings: start.session.settings } } : body, sent(hook), `${hook} is sent so`)
    t.strictSame(given.get(hook), exampleOf(hook).answer.result, `${hook} gives that`)
  }
  t.equal(given.size, HOOKS.length)
  t.strictSame(changes.sort(), HOOKS.flatMap(hook => { const { set = {}, delete: gone = [] } = exampleOf(hook).answer.state ?? {}; return [...gone.map(key => `-${key}`), ...Object.entries(set).map(([key, value]) => `${key}=${JSON.stringify(value)}`)] }).sort(), 'and all changes of the state are made')
})
