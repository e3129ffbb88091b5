import t from 'tap'
import type { Clock } from '../../core/clock.ts'
import { BrokenError, ClientError, ProblemError, SoapFaultError } from '../../client/errors.ts'
import { isBroken, passes, persist, StatusError } from '../../client/retry.ts'

/** What an error is compared by. */
const refusal = (fault: string): Error => ({ fault }) as unknown as Error

/** A clock that jumps to the end of each wait and notes how long it was. */
function jumpingClock () {
  let now = 0
  const waits: number[] = []
  const clock: Clock = {
    now: () => now,
    after (ms, call) { now += ms; waits.push(ms); queueMicrotask(call); return () => {} }
  }
  return { clock, waits }
}
const coded = (code: string): Error => Object.assign(new Error(code), { code })
const fault = (code: number): SoapFaultError => new SoapFaultError({ code: 'Receiver', reason: 'r' }, { code, context: [] })

for (const [what, error, expected] of [
  ['a refused connection', coded('ECONNREFUSED'), true],
  ['a reset connection', coded('ECONNRESET'), true],
  ['undici\'s word for a socket that closed', coded('UND_ERR_SOCKET'), true],
  ['a connection that failed at every address of a name', new AggregateError([coded('ECONNREFUSED'), coded('ECONNREFUSED')]), true],
  ['a broken connection as the cause of another error', new Error('fetch failed', { cause: coded('ECONNRESET') }), true],
  ['a controller call whose connection broke', new BrokenError('Flush', new Error('socket hang up')), true],
  ['502 without SOAP', new StatusError(502, ''), true],
  ['503 without SOAP', new StatusError(503, ''), true],
  ['404 without SOAP', new StatusError(404, ''), false],
  ['500 without SOAP', new StatusError(500, ''), false],
  ['a broker that is being suspended', fault(0x01000015), true],
  ['a broker that is gone', fault(0x02000007), true],
  ['a store that cannot be reached', fault(0x03000006), true],
  ['a closed session', fault(0x0100001b), false],
  ['EndRequests said twice', fault(0x01000019), false],
  ['a service that is not registered', new ProblemError({ status: 404, detail: 'd', name: 'Service_NotFound' }), false],
  ['a head that is starting', new ProblemError({ status: 503, detail: 'd' }), true],
  ['a fault of the service\'s own', new SoapFaultError({ code: 'Receiver', reason: 'r' }), false],
  ['a mistake of ours', new TypeError('x is undefined'), false]
] as const) {
  t.test(`retry: ${what} ${expected ? 'passes by itself' : 'is an answer'}`, async t => t.equal(passes(error), expected))
}

t.test('retry: a fault that repeats is no broken connection, so what was sent is known not to be there', async t => {
  t.equal(isBroken(fault(0x02000007)), false)
})

t.test('retry: pauses double from 50 ms to 2 s, each between half of that and all of it', async t => {
  const { clock, waits } = jumpingClock()
  let tries = 0
  const value = await persist('send', { clock, retryForMs: 60_000 }, async failed => {
    t.equal(failed, tries)
    if (++tries < 10) throw coded('ECONNREFUSED')
    return 'sent'
  })
  t.equal(value, 'sent')
  const full = [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000]
  t.equal(waits.length, full.length)
  full.forEach((most, i) => { const wait = waits[i] as number; t.ok(wait >= most / 2 && wait <= most, `pause ${i}: ${wait} of ${most}`) })
})

t.test('retry: gives up when retryForMs have passed since the first failure, and says what happened last', async t => {
  const { clock, waits } = jumpingClock()
  await t.rejects(persist('send Echo', { clock, retryForMs: 5000 }, async () => { throw coded('ECONNREFUSED') }), { name: 'ConnectionError', message: /^send Echo: gave up after \d+ tries in 5000 ms: ECONNREFUSED$/ })
  t.equal(waits.reduce((sum, wait) => sum + wait, 0), 5000)
})

t.test('retry: keeps HPC Pack\'s name of the last refusal when it gives up', async t => {
  const { clock } = jumpingClock()
  await t.rejects(persist('send', { clock, retryForMs: 100 }, async () => { throw fault(0x02000007) }), { fault: 'Broker_BrokerUnavailable', code: 0x02000007 })
})

t.test('retry: an answer ends it at once', async t => {
  const { clock, waits } = jumpingClock()
  await t.rejects(persist('send', { clock, retryForMs: 60_000 }, async () => { throw fault(0x01000019) }), refusal('Broker_EOMReject_EndRequests'))
  t.same(waits, [])
})

t.test('retry: the signal ends it, while trying and while waiting', async t => {
  const stop = new AbortController()
  const waiting: Clock = { now: () => 0, after (_ms, _call) { queueMicrotask(() => stop.abort(new Error('enough'))); return () => {} } }
  await t.rejects(persist('send', { clock: waiting, retryForMs: 60_000, signal: stop.signal }, async () => { throw coded('ECONNRESET') }), { message: 'enough' })
  let tried = false
  await t.rejects(persist('send', { clock: waiting, retryForMs: 60_000, signal: stop.signal }, async () => { tried = true }), { message: 'enough' })
  t.equal(tried, false)
})

t.test('errors: a number that this version does not know has no name, and keeps its number', async t => {
  t.match(fault(0x01ffffff), { code: 0x01ffffff, fault: undefined })
  t.ok(fault(0x01ffffff) instanceof ClientError)
})
