import t from 'tap'
import { ReceivingBytes, STEP_BYTES } from '../../transport/http/receiving-bytes.ts'

const never = { signal: new AbortController().signal }
/** Whether a promise has resolved by now. */
async function isDone (promise: Promise<unknown> | undefined): Promise<boolean> {
  if (promise === undefined) return true
  let done = false
  void promise.then(() => { done = true }, () => {})
  for (let turn = 0; turn < 5; turn++) await Promise.resolve()
  return done
}

t.test('room for bodies: whatever is announced, a sender holds what has come and one step at most', async t => {
  const bytes = new ReceivingBytes(100 * STEP_BYTES)
  const rooms = await Promise.all(Array.from({ length: 64 }, () => bytes.take(4_194_304, never)))
  t.equal(bytes.held, 64 * STEP_BYTES, 'not 64 × 4 MiB')
  for (const room of rooms) t.equal(room.hold(1000), undefined)
  t.equal(bytes.held, 64 * STEP_BYTES)
  t.equal(rooms[0]?.hold(STEP_BYTES + 1), undefined)
  t.equal(bytes.held, 65 * STEP_BYTES)
  const small = await bytes.take(700, never)
  t.equal(bytes.held, 65 * STEP_BYTES + 700, 'a short body holds its length')
  small.release()
  small.release()
  for (const room of rooms) room.release()
  t.equal(bytes.held, 0)
})

t.test('room for bodies: who has begun comes before who has not, and who began first before others', async t => {
  const bytes = new ReceivingBytes(3 * STEP_BYTES)
  const [first, second, third] = await Promise.all([1, 2, 3].map(() => bytes.take(1e6, never))) as [Room, Room, Room]
  type Room = Awaited<ReturnType<ReceivingBytes['take']>>
  const entrant = bytes.take(1e6, never)
  t.equal(await isDone(third.hold(2 * STEP_BYTES)), true, 'one may go beyond the limit')
  const later = second.hold(2 * STEP_BYTES)
  const earlier = first.hold(2 * STEP_BYTES)
  t.same([await isDone(later), await isDone(earlier), await isDone(entrant)], [false, false, false])
  t.equal(bytes.held, 4 * STEP_BYTES)
  third.release()
  t.same([await isDone(earlier), await isDone(later), await isDone(entrant)], [true, true, false], 'room for the older one, and the younger is the one beyond now')
  first.release()
  second.release()
  t.equal(await isDone(entrant), true)
})

t.test('room for bodies: when all that have begun wait for more, they all come to their end, one after the other', async t => {
  const limit = 8 * STEP_BYTES
  const bytes = new ReceivingBytes(limit)
  const size = 5 * STEP_BYTES
  let most = 0
  const send = async (): Promise<void> => {
    const room = await bytes.take(size, never)
    for (let at = STEP_BYTES; at <= size; at += STEP_BYTES) {
      await room.hold(at)
      most = Math.max(most, bytes.held)
      await Promise.resolve()
    }
    room.release()
  }
  await Promise.all(Array.from({ length: 50 }, send))
  t.equal(bytes.held, 0)
  t.ok(most <= limit + size, `${most / STEP_BYTES} steps at once, the limit and one message are ${(limit + size) / STEP_BYTES}`)
})

t.test('room for bodies: who leaves while it waits leaves nothing behind', async t => {
  const bytes = new ReceivingBytes(STEP_BYTES)
  const room = await bytes.take(1e6, never)
  const abort = new AbortController()
  const entering = bytes.take(1e6, { signal: abort.signal })
  abort.abort(new Error('gone'))
  await t.rejects(entering, /gone/)
  await t.rejects(bytes.take(1e6, { signal: abort.signal }), /gone/)
  await room.hold(2 * STEP_BYTES)
  t.equal(room.hold(STEP_BYTES), undefined, 'has that much')
  room.release()
  t.equal(room.hold(5 * STEP_BYTES), undefined, 'nothing is given to who has given back')
  const [a, b] = [await bytes.take(1000, never), await bytes.take(1000, never)]
  await a.hold(2 * STEP_BYTES)
  const waiting = b.hold(2 * STEP_BYTES)
  b.release()
  await t.rejects(waiting ?? Promise.resolve(), /given back/)
  a.release()
  t.equal(bytes.held, 0)
})
