import t from 'tap'
import { duration, messageLines, searchLines, sessionLines } from '../../cli/trace-lines.ts'

const line = { messageId: 'urn:uuid:1', clientId: '', seq: 1, action: 'urn:Echo', userData: 'row\n17', state: 'answered' as const, tries: 2 }

t.test('trace: a message is told step by step, with what each run came to', async t => {
  const lines = messageLines({
    ...line,
    from: 'store',
    steps: [
      { step: 'received', at: '2026-01-01T00:00:00.000Z' }, { step: 'dispatched', at: '2026-01-01T00:00:01.500Z', sinceMs: 1500, try: 1, taskId: '5-0', node: 'n1', address: 'net.tcp://h:1/' },
      { step: 'failed', at: '2026-01-01T00:00:02.000Z', sinceMs: 500, try: 1, outcome: 'timedOut', why: 'too slow', then: 'put back' }, { step: 'answered', at: null }, { step: 'delivered', at: '2026-01-01T00:00:03.000Z', sinceMs: 1000, times: 2 },
    ],
  })
  t.ok(lines.includes('user data  row 17'), 'on one line')
  for (const part of [/known +from the store alone/, /dispatched +2026-01-01T00:00:01\.500Z +\+1\.500 s +run 1: task 5-0 on n1, net\.tcp:\/\/h:1\//, /failed .*run 1: timedOut; put back; too slow/, /answered +\(not kept\)/, /delivered .* the first of 2 times/]) t.ok(lines.some(text => part.test(text)), String(part))
})

t.test('trace: a search says how much it looked at and how it goes on; a session what was forgotten', async t => {
  t.equal(searchLines({ sessionId: '7', items: [line], looked: 12, next: 'requests.3.c' }).at(-1), "1 of the 12 messages that the search has looked at is as asked for; it goes on with --cursor 'requests.3.c'")
  t.equal(searchLines({ sessionId: '7', items: [], looked: 1 }).at(-1), '0 of the 1 message that the search has looked at are as asked for; there are no more')
  const summary = { traced: 10, most: 10, forgotten: 15, since: '2026-01-01T00:00:00.000Z', waiting: 1, running: 2, answered: 3, faulted: 4, runMs: { p50: 12, p95: 3456, max: 125_000 } }
  const lines = sessionLines({ sessionId: '7', summary, latest: [line], slowest: [], failed: [] })
  t.ok(lines.some(text => /10 of at most 10 since .*; 15 older ones are forgotten \(traceMessages\)/.test(text)))
  t.ok(lines.some(text => /running +half within 12 ms, 95 % within 3\.456 s, longest 2 min 5 s/.test(text)))
  t.same([lines.includes('latest:'), lines.includes('slowest:')], [true, false])
  t.equal(duration(12_000_000), '3 h 20 min')
})
