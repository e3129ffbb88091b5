import type { Test } from 'tap'
import type { MessageStore } from '../../store/message-store.ts'
import type { KeptHead, Sieve } from '../../store/trace-facts.ts'
import { userDataHeader } from '../../wire/soap/hpc-headers.ts'
import { envelope, request, requestsOf, settlement, type Open } from './store-promises.ts'

/** What every store promises of searching; called like storePromises. A store may let through more than fits, so a promise is what is not kept back. */
export function scanPromises (t: Test, open: Open): void {
  async function all (store: MessageStore, of: 'requests' | 'responses', sieve: Sieve = {}, step = 2000, clientId = 'c'): Promise<KeptHead[]> {
    const found: KeptHead[] = []
    for (let below: number | undefined = Infinity; below !== undefined;) {
      const { items, next } = await store.scan(clientId, of, below, step, sieve)
      found.push(...items)
      below = next
    }
    return found
  }

  t.test('a scan gives requests by seq and responses by place, newest first, each once, whatever its steps', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 10).map(one => ({ ...one, receivedAt: 1000 + one.seq })))
    await store.settle([settlement('c', 7), settlement('c', 2, 'no', true)])
    for (const step of [1, 3, 2000]) {
      const requests = await all(store, 'requests', {}, step)
      t.same(requests.map(({ seq }) => seq), [10, 9, 8, 6, 5, 4, 3, 1], `requests in steps of ${step}`)
      const responses = await all(store, 'responses', {}, step)
      t.same(responses.map(({ seq, at, messageId, isFault, action }) => [seq, at, messageId, isFault, action]), [[2, 1, 'm-2', true, 'urn:test/Do'], [7, 0, 'm-7', false, 'urn:test/Do']], `responses in steps of ${step}`)
      t.match(requests[0], { messageId: 'm-10', action: 'urn:test/Do', receivedAt: 1010 })
    }
    t.same(await all(store, 'requests', {}, 10, 'nobody'), [])
    t.same((await store.scan('c', 'requests', 9, 2, {})).items.map(({ seq }) => seq), [8], '8 is there, 7 is answered')
  })

  t.test('a scan lets through what has the text in its user data, however XML writes it, and looks at nothing but that', async t => {
    const { store } = await open(t)
    const raw = (inner: string): Buffer => Buffer.from(`<u:UserData xmlns:u="urn:u">${inner}</u:UserData>`)
    const data = [userDataHeader('key-17'), userDataHeader('a<17>&b'), raw('ke&#121;-17'), raw('<![CDATA[key-17]]>'), raw('<x>key</x><x>-17</x>'), userDataHeader('key-18'), undefined]
    await store.append('c', 'C', data.map((userData, i) => request(i + 1, '<r>key-17</r>', userData === undefined ? {} : { userData })))
    const found = (await all(store, 'requests', { userData: 'key-17' })).map(({ seq }) => seq)
    for (const seq of [1, 3, 4, 5]) t.ok(found.includes(seq), `what is written in way ${seq} is not kept back`)
    t.notOk(found.includes(7), 'a body is not looked at')
    t.ok((await all(store, 'requests', { userData: '<17>' })).some(({ seq }) => seq === 2))
    t.same((await all(store, 'requests', { userData: 'key-17' })).find(({ seq }) => seq === 1)?.userData?.toString(), userDataHeader('key-17').toString(), 'byte for byte')
  })

  t.test('a scan for faults gives faults alone, and one for message ids those that begin so, with urn:uuid: or without', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', [request(1, 'x', { messageId: 'urn:uuid:ab"1' }), request(2, 'x', { messageId: 'ab"2' }), request(3, 'x', { messageId: 'urn:uuid:c', action: 'ab"' })])
    t.same((await all(store, 'requests', { messageId: 'ab"' })).map(({ seq }) => seq), [2, 1])
    await store.settle([1, 2, 3].map(seq => ({ clientId: 'c', seq, response: envelope('y', { relatesTo: ['urn:uuid:ab"1', 'ab"2', 'urn:uuid:c'][seq - 1] as string }), isFault: seq === 2, requestAction: 'urn:test/Do' })))
    t.same((await all(store, 'responses', { messageId: 'ab"' })).map(({ seq }) => seq), [2, 1])
    t.same((await all(store, 'responses', { faults: true })).map(({ seq }) => seq), [2])
  })

  t.test('how a request came to its response is kept with it, known or not', async t => {
    const { store } = await open(t)
    await store.append('c', 'C', requestsOf(1, 3))
    const failed = [{ taskId: '4-0', node: 'n2', at: '2026-01-01T00:00:00.000Z', outcome: 'timedOut', why: 'too slow' }]
    const whole = { receivedAt: 1_764_529_312_123, queuedAt: 1_764_529_312_130, dispatchedAt: 1_764_529_313_000, repliedAt: 1_764_529_313_950, tries: 2, taskId: '5-1', node: 'n1', failed }
    const bare = { receivedAt: undefined, queuedAt: undefined, dispatchedAt: undefined, repliedAt: 1_764_529_313_950, tries: 0, taskId: undefined, node: undefined, failed: undefined }
    await store.settle([{ ...settlement('c', 1), trace: whole }, { ...settlement('c', 2), trace: bare }, settlement('c', 3)])
    t.same((await store.read('c', 0, 10, 1e6)).map(({ trace }) => trace), [whole, bare, undefined])
    t.same((await all(store, 'responses')).map(({ trace }) => trace), [undefined, bare, whole])
  })
}
