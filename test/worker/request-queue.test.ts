import t from 'tap'
import type { BrokerRequest } from '../../broker/worker/broker-request.ts'
import { RequestQueue } from '../../broker/worker/request-queue.ts'

const request = (clientKey: string, seq: number): BrokerRequest => ({ clientKey, seq, tries: 0, envelope: undefined })
const never = new AbortController().signal
const names = async (queue: RequestQueue, count: number): Promise<string[]> => {
  const found: string[] = []
  for (let i = 0; i < count; i++) {
    const next = await queue.take(never)
    found.push(`${next?.clientKey}${next?.seq}`)
  }
  return found
}

t.test('request queue: clients take turns, so a long queue does not starve a short one', async t => {
  const queue = new RequestQueue()
  for (let seq = 1; seq <= 4; seq++) queue.put(request('a', seq))
  queue.put(request('b', 1))
  queue.put(request('c', 1))
  t.same(await names(queue, 6), ['a1', 'b1', 'c1', 'a2', 'a3', 'a4'])
  t.equal(queue.length, 0)
})

t.test('request queue: what comes back goes before what has not been tried', async t => {
  const queue = new RequestQueue()
  queue.put(request('a', 1))
  queue.put(request('a', 2))
  const first = await queue.take(never)
  queue.putBack(first as BrokerRequest)
  t.same(await names(queue, 2), ['a1', 'a2'])
})

t.test('request queue: slots that wait are served in the order in which they asked', async t => {
  const queue = new RequestQueue()
  const asked = [queue.take(never), queue.take(never)]
  queue.put(request('a', 1))
  queue.put(request('a', 2))
  t.same((await Promise.all(asked)).map(next => next?.seq), [1, 2])
})

t.test('request queue: a slot that stops waiting gets nothing, and nothing is lost', async t => {
  const queue = new RequestQueue()
  const stop = new AbortController()
  const asked = queue.take(stop.signal)
  stop.abort()
  t.equal(await asked, undefined)
  queue.put(request('a', 1))
  t.same(await names(queue, 1), ['a1'])
})

t.test('request queue: a dropped request is skipped, waiting or not', async t => {
  const queue = new RequestQueue()
  const gone = request('a', 1)
  queue.put(gone)
  queue.put(request('a', 2))
  gone.isDropped = true
  queue.putBack(gone)
  t.same(await names(queue, 1), ['a2'])
})

t.test('request queue: dropping one client leaves the others and their turns', async t => {
  const queue = new RequestQueue()
  for (const client of ['a', 'b', 'c']) for (let seq = 1; seq <= 3; seq++) queue.put(request(client, seq))
  t.equal(queue.drop('b').length, 3)
  t.equal(queue.length, 6)
  t.same(await names(queue, 6), ['a1', 'c1', 'a2', 'c2', 'a3', 'c3'])
})

t.test('request queue: 200,000 requests of one client keep their order', async t => {
  const queue = new RequestQueue()
  for (let seq = 1; seq <= 200_000; seq++) queue.put(request('a', seq))
  let isInOrder = true
  for (let seq = 1; seq <= 200_000; seq++) isInOrder &&= (await queue.take(never))?.seq === seq
  t.ok(isInOrder)
})
