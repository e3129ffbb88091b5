import type { Test } from 'tap'
import type { DeadLetter, NewLetter } from '../../store/dead-letters.ts'
import type { MessageStore } from '../../store/message-store.ts'
import { userDataHeader } from '../../wire/soap/hpc-headers.ts'
import { envelope, requestsOf, settlement, type Open } from './store-promises.ts'

const letter = (seq: number, more: Partial<NewLetter> = {}): NewLetter => ({
  displayId: 'C',
  when: '2026-01-02T03:04:05.000Z',
  why: 'no answer within 1000 ms',
  tries: [{ taskId: '1-1', node: 'n1', at: '2026-01-02T03:04:04.000Z', outcome: 'timedOut', why: 'no answer within 1000 ms' }],
  request: envelope(`<r>${seq}</r>`, { messageId: `m-${seq}`, userData: userDataHeader(`<${seq}>`) }),
  ...more,
})
const die = (store: MessageStore, clientId: string, ...seqs: number[]): Promise<Array<{ seq: number }>> => store.settle(seqs.map(seq => ({ ...settlement(clientId, seq, 'fault', true), letter: letter(seq) })))
const all = async (store: MessageStore): Promise<DeadLetter[]> => [...(await store.letters.page({ after: '', limit: 100 })).items]
const answer = (body: string): { response: ReturnType<typeof envelope>, isFault: boolean, requestAction: string } => ({ response: envelope(body, { relatesTo: 'm' }), isFault: false, requestAction: 'urn:test/Do' })

/** What every store promises of dead letters. */
export function letterPromises (t: Test, open: Open): void {
  t.test('a request that is given up leaves its fault and a dead letter in one step, with all that is known of it', async t => {
    const { store, reopen } = await open(t)
    await store.append('c', 'C', requestsOf(1, 3))
    await store.settle([settlement('c', 3)])
    await die(store, 'c', 2)
    t.same(await die(store, 'c', 2), [], 'told twice it is one')
    const again = await reopen()
    t.match(await again.letters.page({ after: '', limit: 10 }), {
      total: 1,
      dropped: 0,
      next: undefined,
      items: [{ id: '1', clientId: 'c', displayId: 'C', seq: 2, at: 1, isReplaying: false, why: 'no answer within 1000 ms', messageId: 'm-2', action: 'urn:test/Do', userData: '<2>', tries: [{ node: 'n1', outcome: 'timedOut' }] }],
    })
    const read = await again.letters.read('1')
    t.equal(Buffer.from(read?.request.body ?? []).toString(), '<r>2</r>')
    t.match(read?.letter, { id: '1', seq: 2, messageId: 'm-2', userData: '<2>' })
    t.equal(await again.letters.read('2'), undefined)
    t.equal(await again.deadLettered(), 1)
    t.match(await again.load(), [{ responses: 2, faults: 1, outstanding: [1] }])
  })

  t.test('letters are listed in the order of their death, a page at a time, of one client or of all', async t => {
    const { store } = await open(t)
    for (const id of ['a', 'b c']) { await store.append(id, id, requestsOf(1, 5)); await die(store, id, 5, 4, 3) }
    const first = await store.letters.page({ after: '', limit: 4 })
    t.same(first.items.map(({ id, clientId, seq }) => [id, clientId, seq]), [['1', 'a', 5], ['2', 'a', 4], ['3', 'a', 3], ['4', 'b c', 5]])
    t.equal(first.next, '4')
    const last = await store.letters.page({ after: '4', limit: 4 })
    t.same(last.items.map(({ id }) => id), ['5', '6'])
    t.equal(last.next, undefined)
    t.same((await store.letters.page({ after: '', limit: 2, clientId: 'b c' })).items.map(({ seq }) => seq), [5, 4])
    t.equal((await store.letters.page({ after: '', limit: 2, clientId: 'b c' })).next, '5')
    t.same(await store.letters.page({ after: '', limit: 2, clientId: 'b' }), { items: [], total: 6, dropped: 0 })
  })

  t.test('a replay that is answered takes the fault\'s place, and the letter goes', async t => {
    const { store, reopen } = await open(t)
    await store.append('c', 'C', requestsOf(1, 2))
    await die(store, 'c', 1)
    await store.settle([settlement('c', 2)])
    t.equal(await store.letters.begin('1'), 'replaced')
    t.equal(await store.letters.begin('1'), 'replaced')
    const again = await reopen()
    const [dead] = await all(again) as [DeadLetter]
    t.equal(dead.isReplaying, true, 'who raises the session goes on with it')
    t.equal(await again.letters.end(dead, answer('good')), 'replaced')
    const rows = await again.read('c', 0, 10, 1e6)
    t.same(rows.map(({ at, seq, isFault, envelope }) => [at, seq, isFault, Buffer.from(envelope.body).toString()]), [[0, 1, false, 'good'], [1, 2, false, '<a>2</a>']])
    t.match(await again.load(), [{ responses: 2, faults: 0 }])
    t.same(await all(again), [])
    await again.purge('c')
    t.equal(await again.bytes(), 0, 'every byte is given back')
    t.equal(await again.deadLettered(), 1, 'ever')
  })

  t.test('a replay that is given up too is one dead letter, with what it says now', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 1))
    await die(store, 'c', 1)
    await store.letters.begin('1')
    const [dead] = await all(store) as [DeadLetter]
    t.equal(await store.letters.end(dead, { ...answer('worse'), isFault: true, dead: letter(1, { why: 'exit code 139' }) }), 'replaced')
    t.match(await all(store), [{ id: '1', isReplaying: false, why: 'exit code 139' }])
    t.match(await store.load(), [{ responses: 1, faults: 1 }])
    t.match(await store.read('c', 0, 10, 1e6), [{ isFault: true, envelope: { body: Buffer.from('worse') } }])
    await store.purge('c')
    t.equal(await store.bytes(), 0)
  })

  t.test('where the fault was freed there is no place for another response', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 2))
    await die(store, 'c', 1, 2)
    await store.letters.begin('2')
    await store.release('c', 1)
    t.equal(await store.letters.begin('1'), 'placeGone')
    t.equal(await store.letters.begin('9'), 'letterGone')
    const [, dead] = await all(store) as [DeadLetter, DeadLetter]
    t.equal(await store.letters.end(dead, answer('late')), 'placeGone')
    t.match(await all(store), [{ id: '1', isReplaying: false }, { id: '2', isReplaying: false }])
    t.same(await store.read('c', 0, 10, 1e6), [])
  })

  t.test('more letters than are kept: the oldest go, and it is said; one that runs again stays', async t => {
    const { store } = await open(t, { maxDeadLetters: 3 })
    await store.append('c', 'C', requestsOf(1, 6))
    await die(store, 'c', 1, 2, 3)
    await store.letters.begin('1')
    await die(store, 'c', 4, 5)
    await die(store, 'c', 6)
    t.match(await store.letters.page({ after: '', limit: 10 }), { total: 3, dropped: 3 })
    t.same((await all(store)).map(({ id }) => id), ['1', '5', '6'])
    const none = await open(t, { maxDeadLetters: 0 })
    await none.store.append('c', 'C', requestsOf(1, 1))
    await die(none.store, 'c', 1)
    t.same(await all(none.store), [])
    t.match(await none.store.load(), [{ responses: 1, faults: 1 }])
  })

  t.test('letters are removed one by one, with their client, and with the session; their bytes count', async t => {
    const { store, traces } = await open(t)
    for (const id of ['a', 'ab']) { await store.append(id, id, requestsOf(1, 2)); await store.settle([settlement(id, 1)]) }
    const before = await store.bytes()
    await die(store, 'a', 2)
    await die(store, 'ab', 2)
    t.ok(await store.bytes() > before)
    await store.purge('a')
    t.same((await all(store)).map(({ clientId }) => clientId), ['ab'])
    t.equal(await store.letters.remove('2'), true)
    t.equal(await store.letters.remove('2'), false)
    t.equal(await store.letters.end({ id: '2', clientId: 'ab', seq: 2, at: 1 }, answer('late')), 'letterGone')
    t.match(await store.read('ab', 1, 1, 1e6), [{ isFault: true }], 'its fault stays')
    await store.purge('ab')
    t.equal(await store.bytes(), 0)
    await store.append('z', 'Z', requestsOf(1, 1))
    await die(store, 'z', 1)
    await store.close(false)
    t.same(await traces(), [])
  })
}
