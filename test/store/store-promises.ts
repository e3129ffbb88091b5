import type { Test } from 'tap'
import type { FaultName } from '../../core/errors.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { MessageStore, Settlement, StoredRequest } from '../../store/message-store.ts'

export const envelope = (body: string | Uint8Array, more: Partial<Envelope> = {}): Envelope => ({
  v: 1,
  soap: 11,
  enc: 'utf8',
  action: 'urn:test/Do',
  messageId: 'urn:uuid:none',
  otherHeaders: [],
  prefixesInScope: [['', 'urn:test']],
  body: typeof body === 'string' ? Buffer.from(body) : body,
  ...more
})
export const request = (seq: number, body: string | Uint8Array = `<r>${seq}</r>`, more: Partial<Envelope> = {}): StoredRequest =>
  ({ seq, batchId: -1, envelope: envelope(body, { messageId: `m-${seq}`, ...more }) })
export const requestsOf = (from: number, through: number): StoredRequest[] => Array.from({ length: through - from + 1 }, (_, i) => request(from + i))
export const settlement = (clientId: string, seq: number, body = `<a>${seq}</a>`, isFault = false): Settlement =>
  ({ clientId, seq, response: envelope(body, { relatesTo: `m-${seq}` }), isFault, requestAction: 'urn:test/Do' })
/** What `t.rejects` is to see: the fault's name, and its context as far as given. */
export const fault = (name: FaultName, context?: Array<string | RegExp>): { name: string } => ({ name: 'SoaError', fault: name, ...(context === undefined ? {} : { context }) } as { name: string })
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString()
const through = (seq: number, committed = seq, endOfMessages = false, batchId = -1): { seq: number, committed: number, endOfMessages: boolean, batchId: number } =>
  ({ seq, committed, endOfMessages, batchId })

/** A store under test. `reopen` gives the store as a broker finds it after it was raised again; `gone` tells whether any trace is left. */
export interface Opened { store: MessageStore, reopen: () => Promise<MessageStore>, traces: () => Promise<string[]> }
export type Open = (t: Test, limits?: { maxSessionBytes?: number, maxDeadLetters?: number }) => Promise<Opened>

/** What every store promises. memory-store.test.ts and redis-store.test.ts each call this with their own `open`. */
export function storePromises (t: Test, open: Open): void {
  const bodies = async (store: MessageStore, clientId = 'c'): Promise<string[]> => (await store.read(clientId, 0, 1000, 1e9)).map(r => textOf(r.envelope.body))

  t.test('appending the same batch twice keeps each request once', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 3))
    const bytes = await store.bytes()
    await store.append('c', 'C', requestsOf(1, 3))
    t.match(await store.load(), [{ clientId: 'c', displayId: 'C', appended: 3, outstanding: [1, 2, 3], responses: 0 }])
    t.equal(await store.bytes(), bytes, 'nor do its bytes count twice')
    t.ok(bytes > 0)
  })

  t.test('a batch that overlaps the last one adds only what is new', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 3))
    await store.append('c', 'C', requestsOf(2, 5))
    t.match(await store.load(), [{ appended: 5, outstanding: [1, 2, 3, 4, 5] }])
  })

  t.test('a batch that failed may come after a later one, and then once only', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 2))
    await store.append('c', 'C', requestsOf(6, 7))
    t.match(await store.load(), [{ appended: 7, outstanding: [1, 2, 6, 7] }])
    await store.append('c', 'C', requestsOf(3, 4))
    await store.settle([settlement('c', 3), settlement('c', 4)])
    await store.append('c', 'C', requestsOf(3, 5))
    t.match(await store.load(), [{ appended: 7, outstanding: [1, 2, 5, 6, 7], responses: 2 }])
  })

  t.test('a request appended again after its settle does not come back to life', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 3))
    await store.settle([settlement('c', 2)])
    await store.append('c', 'C', requestsOf(1, 3))
    t.match(await store.load(), [{ appended: 3, outstanding: [1, 3], responses: 1 }])
    t.same((await store.requests('c', [1, 2, 3])).map(r => r.seq), [1, 3])
  })

  t.test('settling twice keeps the first response and never two', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 1))
    await store.commit('c', 'C', through(1, 1, true))
    t.same(await store.settle([settlement('c', 1, 'first')]), [{ clientId: 'c', seq: 1, at: 0 }])
    t.same(await store.settle([settlement('c', 1, 'second')]), [], 'a request already gone: nothing happens')
    t.same(await bodies(store), ['first'])
  })

  t.test('two responses to one request in one batch: the first stays', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 2))
    t.same(await store.settle([settlement('c', 2, 'a'), settlement('c', 2, 'b'), settlement('c', 1, 'd')]), [{ clientId: 'c', seq: 2, at: 0 }, { clientId: 'c', seq: 1, at: 1 }])
    t.same(await bodies(store), ['a', 'd'])
  })

  t.test('a response to a request that never was, or of a client that never was, is not kept', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 1))
    t.same(await store.settle([settlement('c', 9), settlement('nobody', 1)]), [])
    t.match(await store.load(), [{ clientId: 'c', responses: 0, outstanding: [1] }])
    t.equal((await store.load()).length, 1)
  })

  t.test('settle works before the commit and after it', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 4))
    await store.settle([settlement('c', 3)])
    await store.commit('c', 'C', through(4))
    await store.settle([settlement('c', 1), settlement('c', 4, 'fault', true)])
    t.match(await store.load(), [{ appended: 4, committed: 4, committedSeq: 4, outstanding: [2], responses: 3, faults: 1, endOfMessages: false }])
  })

  t.test('places are dense and in the order of arrival, over many clients in one step', async t => {
    const { store } = await open(t)
    const clients = Array.from({ length: 30 }, (_, i) => `client ${i}`)
    for (const id of clients) await store.append(id, id, requestsOf(1, 3))
    const kept = await store.settle([...clients.map(id => settlement(id, 3)), ...clients.map(id => settlement(id, 1))])
    t.equal(kept.length, 60)
    for (const id of clients) {
      t.same(kept.filter(k => k.clientId === id).map(k => [k.seq, k.at]), [[3, 0], [1, 1]], id)
      t.same((await store.read(id, 0, 10, 1e6)).map(r => [r.seq, r.at]), [[3, 0], [1, 1]])
    }
  })

  t.test('a commit keeps seq, count, end mark and batch id in one step; an older one takes nothing back', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 6).map(r => ({ ...r, batchId: 2 })))
    await store.commit('c', 'C', through(4, 4, false, 2))
    t.match(await store.load(), [{ committed: 4, committedSeq: 4, endOfMessages: false, batchId: 2 }])
    await store.commit('c', 'C', through(6, 6, true, 3))
    await store.commit('c', 'C', through(4, 4, false, 2))
    t.match(await store.load(), [{ committed: 6, committedSeq: 6, endOfMessages: true, batchId: 3 }])
  })

  t.test('a commit of what was never appended is refused', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 2))
    await t.rejects(store.commit('c', 'C', through(3)), fault('StorageFailure'))
    t.match(await store.load(), [{ committed: 0, committedSeq: 0 }])
  })

  t.test('EndRequests of a client that has sent nothing keeps its end mark', async t => {
    const { store } = await open(t)
    await store.commit('c', 'C', through(0, 0, true))
    t.match(await store.load(), [{ clientId: 'c', displayId: 'C', appended: 0, endOfMessages: true, outstanding: [] }])
  })

  t.test('a client of which nothing is left can be discarded, released and purged all the same', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 2))
    await store.discard('c', 0)
    await store.append('c', 'C', [request(5)]) // 3 and 4 may still come
    await store.discard('c', 0)
    await store.discard('c', 0)
    await store.release('c', 0)
    await store.purge('c')
    t.equal(await store.bytes(), 0)
    t.same(await store.load(), [])
  })

  t.test('discard forgets uncommitted requests only, and they do not come back', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 8))
    await store.commit('c', 'C', through(3))
    await store.settle([settlement('c', 5)])
    await store.discard('c', 3)
    t.match(await store.load(), [{ appended: 8, committed: 3, outstanding: [1, 2, 3], responses: 1, uncommittedMessageIds: [] }])
    await store.append('c', 'C', requestsOf(4, 8))
    t.match(await store.load(), [{ outstanding: [1, 2, 3] }], 'the old batch sent again')
    await store.append('c', 'C', requestsOf(9, 10))
    await store.discard('c', 0)
    t.match(await store.load(), [{ appended: 10, outstanding: [1, 2, 3] }], 'committed requests stay, whatever is asked')
    await store.discard('nobody', 0)
  })

  t.test('message ids are told of requests that no commit covers', async t => {
    const { store } = await open(t)
    const odd = 'a "quoted" \\ id – ünï \u{1f600}'
    await store.append('c', 'C', [...requestsOf(1, 3), request(4, '', { messageId: odd }), request(5, '', { messageId: undefined })])
    await store.commit('c', 'C', through(2))
    await store.settle([settlement('c', 3)])
    t.match(await store.load(), [{ outstanding: [1, 2, 4, 5], uncommittedMessageIds: [odd] }])
    t.equal((await store.load())[0]?.uncommittedMessageIds.length, 1)
  })

  t.test('purge removes all of one client, and session totals never go down', async t => {
    const { store } = await open(t)
    await store.append('a', 'A', requestsOf(1, 5))
    await store.append('b', 'B', requestsOf(1, 2))
    await store.commit('a', 'A', through(5, 5, true))
    await store.settle([settlement('a', 1), settlement('a', 2, 'f', true), settlement('a', 3), settlement('b', 1)])
    const totals = async (): Promise<number[]> => {
      const purged = await store.purged()
      const live = await store.load()
      const sum = (of: (c: typeof live[number]) => number): number => live.reduce((n, c) => n + of(c), 0)
      return [purged.total + sum(c => c.responses + c.outstanding.length), purged.processed + sum(c => c.responses), purged.faulted + sum(c => c.faults)]
    }
    const before = await totals()
    await store.purge('a')
    await store.purge('a')
    t.same(await totals(), before)
    t.same(await store.purged(), { total: 5, processed: 3, faulted: 1 })
    t.match(await store.load(), [{ clientId: 'b' }])
    t.equal((await store.load()).length, 1)
    t.same(await store.read('a', 0, 10, 1e6), [])
    t.same(await store.settle([settlement('a', 4)]), [], 'a late response does not bring the client back')
    await store.append('a', 'A', requestsOf(1, 1))
    t.same(await store.settle([settlement('a', 1)]), [{ clientId: 'a', seq: 1, at: 0 }], 'the id may be used again, from the beginning')
    await store.purge('a')
    await store.purge('b')
    t.equal(await store.bytes(), 0, 'every byte is given back')
  })

  t.test('reading pages by place, by count and by bytes, and gives one in any case', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 10))
    await store.settle(requestsOf(1, 10).map(({ seq }) => settlement('c', seq, 'x'.repeat(10_000))))
    t.same((await store.read('c', 0, 4, 1e6)).map(r => r.at), [0, 1, 2, 3])
    t.same((await store.read('c', 8, 4, 1e6)).map(r => r.at), [8, 9])
    t.same((await store.read('c', 2, 10, 35_000)).map(r => r.at), [2, 3, 4])
    t.same((await store.read('c', 2, 10, 1)).map(r => r.at), [2])
    t.same(await store.read('c', 10, 4, 1e6), [])
    t.same(await store.read('c', 0, 0, 1e6), [])
    t.same(await store.read('nobody', 0, 5, 1e6), [])
    t.match(await store.read('c', 5, 1, 1e6), [{ seq: 6, isFault: false, requestAction: 'urn:test/Do', envelope: { relatesTo: 'm-6' } }])
  })

  t.test('released responses are gone and their bytes with them; places go on', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 5))
    await store.settle([1, 2, 3].map(seq => settlement('c', seq)))
    await store.release('c', 1)
    await store.release('c', 0)
    t.same((await store.read('c', 0, 10, 1e6)).map(r => r.at), [2])
    await store.release('c', 99)
    await store.settle([settlement('c', 4)])
    t.same((await store.read('c', 0, 10, 1e6)).map(r => [r.at, r.seq]), [[3, 4]], 'what was never there is not released ahead')
    t.match(await store.load(), [{ responses: 4, outstanding: [5] }], 'totals stay')
    await store.release('c', 3)
    await store.discard('c', 0)
    t.equal(await store.bytes(), 0)
    await store.release('nobody', 5)
  })

  t.test('an envelope comes back as it went in, UserData byte for byte', async t => {
    const { store, reopen } = await open(t)
    const full: Envelope = {
      v: 1,
      soap: 12,
      enc: 'nbfx-static',
      action: 'urn:ünï',
      messageId: '',
      relatesTo: 'r',
      clientId: '',
      userData: Buffer.from('<u:UserData xmlns:u="urn:u"><![CDATA[ \r\n ]]><!-- c -->\u00e9\u2028</u:UserData>'),
      otherHeaders: [Buffer.from('<a/>'), Buffer.alloc(0), Uint8Array.of(0, 255, 128, 13, 10)],
      prefixesInScope: [['', ''], ['p', 'urn:p'], ['', 'urn:inner']],
      body: Uint8Array.from({ length: 256 }, (_, i) => i)
    }
    const bare: Envelope = { v: 1, soap: 11, enc: 'utf8', action: '', otherHeaders: [], prefixesInScope: [], body: Buffer.alloc(0) }
    await store.append('c', 'C', [{ seq: 1, batchId: 7, envelope: full }, { seq: 2, batchId: -1, envelope: bare }, { seq: 3, batchId: 0, envelope: { ...bare, userData: Buffer.alloc(0) } }])
    await store.commit('c', 'C', through(3))
    await store.settle([{ clientId: 'c', seq: 3, response: full, isFault: true, requestAction: '' }])
    const plain = (e: Envelope): unknown => ({ ...e, userData: e.userData && [...e.userData], otherHeaders: e.otherHeaders.map(h => [...h]), body: [...e.body] })
    const again = await reopen()
    const [one, two] = await again.requests('c', [1, 2])
    t.same(plain(one?.envelope ?? bare), plain(full))
    t.equal(one?.batchId, 7)
    t.same(plain(two?.envelope ?? full), plain(bare))
    t.notOk(two && 'userData' in two.envelope && two.envelope.userData !== undefined, 'absent stays absent')
    const [answer] = await again.read('c', 0, 1, 1e6)
    t.same(plain(answer?.envelope ?? bare), plain(full))
    t.match(answer, { isFault: true, requestAction: '', seq: 3, at: 0 })
  })

  t.test('messages of 640,000 bytes pass unchanged both ways', async t => {
    const { store } = await open(t)
    const big = Buffer.alloc(640_000, 'abcdefghi\u00e9')
    await store.append('c', 'C', [request(1, big), request(2, big)])
    t.ok(Buffer.from((await store.requests('c', [1]))[0]?.envelope.body ?? []).equals(big))
    await store.settle([{ ...settlement('c', 1), response: envelope(big) }, { ...settlement('c', 2), response: envelope(big) }])
    const page = await store.read('c', 0, 10, 1_000_000)
    t.equal(page.length, 1, 'the second does not fit the page')
    t.ok(Buffer.from(page[0]?.envelope.body ?? []).equals(big))
    t.ok(await store.bytes() >= 1_280_000)
  })

  t.test('a raised session knows all that was kept', async t => {
    const { store, reopen } = await open(t)
    await store.append('a', 'A', requestsOf(1, 2500).map(r => ({ ...r, batchId: 4 })))
    await store.append('b', 'Bee', requestsOf(1, 1))
    await store.commit('a', 'A', through(1500, 1500, false, 4))
    await store.settle(requestsOf(1, 1200).map(({ seq }) => settlement('a', seq, 'ok', seq % 100 === 0)))
    const clients = await (await reopen()).load()
    t.match(clients, [
      { clientId: 'a', displayId: 'A', appended: 2500, committed: 1500, committedSeq: 1500, endOfMessages: false, batchId: 4, responses: 1200, faults: 12 },
      { clientId: 'b', displayId: 'Bee', appended: 1, committed: 0, outstanding: [1], uncommittedMessageIds: ['m-1'] }
    ])
    t.same(clients[0]?.outstanding, Array.from({ length: 1300 }, (_, i) => 1201 + i), 'in ascending order')
    t.same(clients[0]?.uncommittedMessageIds, Array.from({ length: 1000 }, (_, i) => `m-${1501 + i}`))
  })

  t.test('a byte quota refuses requests before anything is kept, and lets them in again when there is room', async t => {
    const { store } = await open(t, { maxSessionBytes: 10_000 })
    const big = 'x'.repeat(4000)
    await store.append('c', 'C', [request(1, big), request(2, big)])
    await t.rejects(store.append('c', 'C', [request(3, 'small'), request(4, big)]), fault('StorageSpaceNotSufficient', ['maxSessionBytes', /^\d{5}$/, '10000']))
    t.match(await store.load(), [{ appended: 2, outstanding: [1, 2] }])
    await store.append('c', 'C', [request(1, big), request(2, big)])
    t.match(await store.settle([settlement('c', 1, 'tiny')]), [{ seq: 1 }], 'what is kept already can be answered')
    await store.append('c', 'C', [request(3, 'small'), request(4, big)])
    t.match(await store.load(), [{ appended: 4, outstanding: [2, 3, 4] }])
  })

  t.test('an empty batch is no work', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', [])
    t.same(await store.settle([]), [])
    t.same(await store.requests('c', []), [])
    t.same(await store.load(), [])
  })

  t.test('a closed store says so, and leaves nothing when it is not to be kept', async t => {
    const { store, traces } = await open(t)
    await store.append('c', 'C', requestsOf(1, 10))
    await store.settle([settlement('c', 1)])
    await store.close(false)
    await store.close(false)
    t.same(await traces(), [])
    await t.rejects(store.append('c', 'C', requestsOf(11, 11)), fault('StorageClosed'))
    await t.rejects(store.read('c', 0, 1, 1), fault('StorageClosed'))
  })

  t.test('what a custom broker decided is kept with the request', async t => {
    const { store, reopen } = await open(t)
    const decision = { lane: 3, answer: { action: 'urn:r', body: '<r>né</r>', isFault: true }, scatter: [{ action: 'urn:p', body: '<p/>' }] }
    await store.append('c', 'C', [{ ...request(1), decision }, request(2)])
    const raised = await reopen()
    const [decided, plain] = await raised.requests('c', [1, 2])
    t.same(decided?.decision, decision)
    t.equal(plain?.decision, undefined)
  })

  t.test('changes of the custom broker\'s map are kept with the batch that they go with, or alone', async t => {
    const { store, reopen } = await open(t)
    await store.append('c', 'C', requestsOf(1, 2), [{ key: 'a', n: 1, value: '1' }, { key: 'b', n: 2, value: '"two words"' }])
    await store.settle([settlement('c', 1)], [{ key: 'a', n: 3, value: '{"x":[1,"é"]}' }])
    await store.keepState([{ key: 'c', n: 4, value: 'null' }, { key: 'b', n: 5, value: undefined }])
    const { entries, n } = await (await reopen()).state()
    t.same([...entries].sort(), [['a', '{"x":[1,"é"]}'], ['c', 'null']])
    t.equal(n, 5, 'the next change has a higher number, also after a removal')
  })

  t.test('a change of the map that comes late, behind a newer one, changes nothing', async t => {
    const { store } = await open(t)
    await store.keepState([{ key: 'a', n: 9, value: '9' }])
    await store.append('c', 'C', requestsOf(1, 1), [{ key: 'a', n: 8, value: '8' }])
    t.same([...(await store.state()).entries], [['a', '9']])
  })

  t.test('a batch that is refused takes its changes of the map with it', async t => {
    const { store } = await open(t, { maxSessionBytes: 200 })
    await t.rejects(store.append('c', 'C', requestsOf(1, 9), [{ key: 'a', n: 1, value: '1' }]), fault('StorageSpaceNotSufficient'))
    t.same([...(await store.state()).entries], [])
  })
}
