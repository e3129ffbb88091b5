import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { DeadLetterPage, DeadLetterView, WholeDeadLetter } from '../../broker/contract.ts'
import { restServer, type RestNeeds } from '../../broker/head/rest.ts'
import { WorkerLink } from '../../broker/head/worker-link.ts'
import { controlServer, type WorkerDesk } from '../../broker/worker/control.ts'
import { readSettings } from '../../config/read-settings.ts'
import { silent } from '../../core/log.ts'
import { MemoryMessageStore } from '../../store/memory-store.ts'
import { settle } from '../clock.ts'
import { FLUSH, never, open, reading, request } from '../worker/open-session.ts'
import { run } from './helpers.ts'

t.test('cli: dead letters are listed, shown, replayed and removed, through REST, the head and the worker\'s own socket', async t => {
  let isMended = false
  const { session, client } = await open(t, {
    durable: true,
    settings: { messageResendLimit: 1 },
    store: new MemoryMessageStore({ maxDeadLetters: 2000 }),
    answer: sent => Number((sent.messageId ?? '').slice(9)) % 2 === 0 && !isMended ? { outcome: 'badReply', error: new Error('no SOAP: <html>\u001b[2J\n</html>') } : { outcome: 'answered', reading: reading({ ...sent, action: 'urn:EchoResponse' }) },
  })
  for (let n = 1; n <= 4; n++) await client('Risk desk').accept(request(n), -1, never)
  await client('Risk desk').endRequests(4, FLUSH)
  await settle(20)

  const dir = mkdtempSync(join(tmpdir(), 'letters-'))
  const control = controlServer({ session: id => id === '7' ? session : undefined } as WorkerDesk, silent)
  await new Promise<void>(resolve => control.listen(join(dir, 'control'), resolve))
  const link = new WorkerLink(join(dir, 'control'))
  const none = (): never => { throw new Error('not asked for in this test') }
  const raising: RestNeeds['raising'] = { locate: async () => ({ link }) as never, mend: async () => ({ link }) as never }
  const app = await restServer({
    launcher: { create: none, show: none, list: none, cancel: none, close: none },
    netTcpUrl: () => undefined,
    raising,
    heads: { list: none, ask: none },
    nodes: { nodes: none, setDraining: none },
    services: { put: none, get: none, list: none },
    settings: readSettings({}, {}),
    baseUrl: () => '',
    now: () => 0,
    beside: () => {},
    version: '0',
    log: silent,
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const env = { SOA_HEAD: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` }
  t.teardown(async () => {
    await app.close()
    await link.close()
    await new Promise(resolve => { control.closeAllConnections(); control.close(resolve) })
    rmSync(dir, { recursive: true })
  })
  const soa = async (...argv: string[]): Promise<{ code: number, out: string, err: string }> => await run(['dead-letter', ...argv], env)
  const json = async <T>(...argv: string[]): Promise<T> => JSON.parse((await soa(...argv, '--json')).out) as T

  const page = await json<DeadLetterPage>('list', '7')
  t.match(page, { total: 2, dropped: 0, items: [{ id: '1', sessionId: '7', clientId: 'Risk desk', messageId: 'urn:uuid:2', userData: '2', state: 'Dead', tries: [{ outcome: 'badReply', taskId: '1-0', node: 'n1' }, {}] }, { id: '2', messageId: 'urn:uuid:4' }] })
  const { out } = await soa('list', '7', '--client', 'risk DESK')
  t.match(out, /ID +CLIENT +MESSAGE .*\n1 +Risk desk +urn:uuid:2 +2 +Dead +2 .*no SOAP/)
  t.notMatch(out, '\u001b', 'a message of a service gives no orders to a terminal')
  t.match(await soa('list', '7', '--limit', '1'), { out: /more than 1: --limit/ })
  t.match(await soa('list', '7', '--client', 'nobody'), { code: 0, out: /^ID/ })

  t.match(await json<WholeDeadLetter>('show', '7', '1'), { id: '1', body: '<n>2</n>', envelope: /<n>2<\/n>/ })
  t.match((await soa('show', '7', '1')).out, /message +urn:uuid:2\n[^]*TASK +NODE [^]*1-0 +n1 [^]*<n>2<\/n>/)
  t.match(await soa('show', '7', '9'), { code: 4, out: '', err: 'soa: noDeadLetter: session 7 has no dead letter 9' })
  t.match(await soa('show', '8', '1'), { code: 4, err: /InvalidSessionId/ })

  isMended = true
  const answered = await app.inject({ method: 'POST', url: '/api/v1/sessions/7/dead-letters/1/replay' })
  t.match([answered.statusCode, answered.json()], [202, { id: '1', state: 'Replaying' }])
  await settle(20)
  t.match(await json<object>('replay', '7', '2'), { id: '2', state: 'Replaying' })
  await settle(20)
  const traced = await run(['trace', '7', 'urn:uuid:4'], env)
  t.match(traced, { code: 0, out: /state +answered/ }, 'what replay says to type next tells how it ended')
  t.match(session.counters.view(), { processed: 4, faulted: 0, deadLettered: 2, replaying: 0 })
  t.same(await json<DeadLetterPage>('list', '7'), { items: [], total: 0, dropped: 0 })

  isMended = false
  await client('other').accept(request(6), -1, never)
  await client('other').endRequests(1, FLUSH)
  await settle(20)
  t.match(await soa('remove', '7', '3'), { code: 0, out: 'dead letter 3 of session 7 is removed' })
  t.match(await soa('remove', '7', '3'), { code: 0 }, 'again: nothing happens')
  t.same((await json<DeadLetterPage>('list', '7')).items, [])
  for (const [url, why] of [['limit=0', /limit/], ['limit=x', /limit/], ['cursor=x', /cursor/], ['page=2', /page/]] as const) t.match((await app.inject(`/api/v1/sessions/7/dead-letters?${url}`)).json(), { status: 400, name: 'InvalidArgument', detail: why })

  for (const n of [8, 10]) await client('Third').accept(request(n), -1, never)
  await client('Third').endRequests(2, FLUSH)
  await settle(20)
  const [first, second] = (await json<DeadLetterPage>('list', '7', '--client', 'third')).items as [DeadLetterView, DeadLetterView]
  const again = await soa('replay', '7', first.id, '99', second.id, '--head', env.SOA_HEAD)
  t.match(again, { code: 4, out: `dead letter ${first.id} runs again; its outcome: soa trace 7 ${first.messageId} --head ${env.SOA_HEAD}\ndead letter ${second.id} runs again; its outcome: soa trace 7 ${second.messageId} --head`, err: 'soa: 99: noDeadLetter: session 7 has no dead letter 99\n' }, 'of several each has its result')
  await settle(20)
  const [third, fourth] = (await json<DeadLetterPage>('list', '7', '--client', 'third')).items as [DeadLetterView, DeadLetterView]
  t.match(await soa('replay', '7', third.id), { code: 0, out: new RegExp(`state +Replaying\\n[^]*\\n\\nits outcome: soa trace 7 ${third.messageId}\\n$`) })
  await settle(20)
  await soa('remove', '7', third.id, fourth.id)

  t.match(await soa('replay', '7'), { code: 2, out: '', err: 'soa: ids are expected, or --all\n' })
  t.match(await soa('remove', '7', '1', '--all'), { code: 2, out: '', err: 'soa: ids or --all, not both\n' })
  t.match(await soa('replay', '7', '1', '--client', 'third'), { code: 2, err: 'soa: --client goes with --all\n' })
  t.match(await soa('replay', '7', '--all', '--client', 'third'), { code: 0, out: 'session 7 has no dead letters of this client\n' })
  t.strictSame(await json<object>('replay', '7', '--all'), { items: [] })
  // More than a page of them.
  const MANY = 1002
  for (let n = 1; n <= MANY; n++) await client('Many').accept(request(2 * n), -1, never)
  await client('Many').endRequests(MANY, FLUSH)
  await client('One').accept(request(2), -1, never)
  await client('One').endRequests(1, FLUSH)
  await until(() => session.counters.view().processed === 4 + 1 + 2 + MANY + 1)
  const { items: [one] } = await json<{ items: DeadLetterView[] }>('list', '7', '--client', 'one')
  t.match(await json<{ items: object[] }>('replay', '7', '--all', '--client', 'ONE'), { items: [{ id: one?.id, state: 'Replaying' }] }, 'of one alone it is a list too')
  await settle(20)
  const dead = (await json<DeadLetterPage>('list', '7', '--limit', '2000')).items.map(({ id }) => id)
  t.equal(dead.length, MANY + 1)
  isMended = true
  const all = await soa('replay', '7', '--all')
  t.strictSame([all.code, all.err, all.out.match(/^dead letter \d+ runs again/gm)], [0, '', dead.map(id => `dead letter ${id} runs again`)], 'each once, in the order of the list')
  await until(() => session.counters.view().replaying === 0)
  t.equal((await json<DeadLetterPage>('list', '7')).total, 0)

  isMended = false
  for (const n of [2, 4]) await client('Last').accept(request(n), -1, never)
  await client('Last').endRequests(2, FLUSH)
  await until(() => session.counters.view().processed === 4 + 1 + 2 + MANY + 1 + 2)
  t.match(await soa('remove', '7', '--all'), { code: 0, out: /^dead letter \d+ of session 7 is removed\ndead letter \d+ of session 7 is removed\n$/ })
  t.equal((await json<DeadLetterPage>('list', '7')).total, 0)
})

async function until (reached: () => boolean): Promise<void> { while (!reached()) await settle(1) }
