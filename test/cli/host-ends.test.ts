import t from 'tap'
import type { SessionView } from '../../broker/contract.ts'
import { hostEnds } from '../../cli/host-ends.ts'

const STACK = 'Error: no such file\n    at load (/svc/a.js:3:9)\n'
const ended = (id: string, why = 'it exited with status 1', stderr = STACK): SessionView['tasks'][number] =>
  ({ id, node: 'n1', pid: 1, state: 'Failed', capacity: 1, at: `2026-01-01T00:00:0${id.length}.000Z`, exit: { code: 1, signal: null, why, stderr } }) as SessionView['tasks'][number]
const failure = { taskId: '1-0', node: 'n1', at: '2026-01-01T00:00:00.000Z', why: 'it exited with status 1', stderr: STACK }

t.test('session show: what ended alike is told once, with how often', async t => {
  t.same(hostEnds({ tasks: ['1', '2', '3', '4'].map(id => ended(id)) }), ['', 'host of task 1 on n1 ended, 2026-01-01T00:00:01.000Z: it exited with status 1 (× 4)', '  Error: no such file', '      at load (/svc/a.js:3:9)'])
})

t.test('session show: hosts that failed as the last one did are counted with it', async t => {
  t.equal(hostEnds({ lastFailure: failure, tasks: [ended('1-0'), ended('1-1'), ended('1-2'), ended('1-3')] })[1], 'last failed host: it exited with status 1 on n1, 2026-01-01T00:00:00.000Z (× 4)')
  t.equal(hostEnds({ lastFailure: failure, tasks: [ended('2-1')] })[1], 'last failed host: it exited with status 1 on n1, 2026-01-01T00:00:00.000Z (× 2)', 'its own task is remembered no more')
  t.equal(hostEnds({ lastFailure: failure, tasks: [ended('1-0')] })[1], 'last failed host: it exited with status 1 on n1, 2026-01-01T00:00:00.000Z')
})

t.test('session show: what ended in another way is told by itself', async t => {
  const lines = hostEnds({ tasks: [ended('1'), ended('2', 'it was ended by SIGSEGV', ''), ended('3')] })
  t.same(lines.filter(line => line.startsWith('host')), ['host of task 1 on n1 ended, 2026-01-01T00:00:01.000Z: it exited with status 1 (× 2)', 'host of task 2 on n1 ended, 2026-01-01T00:00:01.000Z: it was ended by SIGSEGV'])
  t.same(hostEnds({ tasks: [] }), [])
})
