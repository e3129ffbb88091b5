import t from 'tap'
import { after, canBeRaised, statesWith, whyNotServed } from '../../broker/head/session.states.ts'
import { Gate, Shared, Turns } from '../../broker/head/turns.ts'
import type { SessionRecord, SessionState } from '../../store/session-store.ts'

const record = (state: SessionState, durable: boolean): SessionRecord => ({ sessionId: '7', service: 'X', durable, priority: 2000, settings: {}, environment: {}, state, createdAt: '' })

t.test('session states: what a lost worker does to a session', async t => {
  const rows: Array<[from: SessionState, durable: SessionState, interactive: SessionState]> = [
    ['Starting', 'Starting', 'Failed'], ['Running', 'Suspended', 'Failed'], ['Canceled', 'Canceled', 'Canceled'], ['Finished', 'Finished', 'Finished'], ['Failed', 'Failed', 'Failed']
  ]
  for (const [from, durable, interactive] of rows) t.strictSame([after(from, 'orphaned'), after(from, 'lost')], [durable, interactive], from)
  t.strictSame(statesWith('cancel'), ['Starting', 'Running', 'Suspended', 'Canceled'])
  t.equal(after('Finished', 'cancel'), undefined)
})

t.test('session states: only durable sessions that are not over are raised, and the others say why not', async t => {
  for (const state of ['Starting', 'Running', 'Suspended', 'Canceled'] as const) t.strictSame([canBeRaised(record(state, true)), canBeRaised(record(state, false))], [true, false], state)
  for (const [state, fault] of [['Finished', 'Session_ValidateJobFailed_AlreadyFinished'], ['Canceled', 'Session_ValidateJobFailed_JobCanceled'], ['Failed', 'Broker_SessionFailure'], ['Running', 'Broker_BrokerUnavailable']] as const) {
    t.equal(whyNotServed(record(state, false)).fault, fault)
  }
})

t.test('turns: one at a time for a key, in order, and a failure holds nobody up', async t => {
  const turns = new Turns()
  const seen: string[] = []
  let open = (): void => {}
  const gate = new Promise<void>(resolve => { open = resolve })
  const first = turns.run('a', async () => { await gate; seen.push('first'); throw new Error('no') })
  const second = turns.run('a', async () => { seen.push('second') })
  await turns.run('b', async () => { seen.push('other key') })
  t.ok(turns.isTaken('a'))
  open()
  await t.rejects(first, { message: 'no' })
  await second
  t.strictSame(seen, ['other key', 'first', 'second'])
  t.notOk(turns.isTaken('a'))
})

t.test('shared: who asks meanwhile shares the result, who asks later starts anew', async t => {
  const shared = new Shared<number>()
  let runs = 0
  const work = async (): Promise<number> => ++runs
  t.strictSame(await Promise.all([shared.run('a', work), shared.run('a', work), shared.run('b', work)]), [1, 1, 2])
  t.equal(await shared.run('a', work), 3)
})

t.test('gate: so many at work, so many waiting, and the next one is refused', async t => {
  const gate = new Gate('creating sessions', { width: 2, depth: 1 })
  const opens: Array<() => void> = []
  let most = 0
  let now = 0
  const work = async (): Promise<void> => { most = Math.max(most, ++now); await new Promise<void>(resolve => opens.push(resolve)); now-- }
  const runs = [gate.run(work), gate.run(work), gate.run(work)]
  await t.rejects(gate.run(work), { fault: 'refused', message: /creating sessions: 2 under way and 1 waiting/ })
  opens.shift()?.()
  await runs[0]
  await Promise.resolve()
  while (opens.length > 0) opens.shift()?.()
  await Promise.race([runs[2], Promise.resolve()])
  while (opens.length > 0) opens.shift()?.()
  await Promise.all(runs)
  t.equal(most, 2)
  let ran = false
  await gate.run(async () => { ran = true })
  t.ok(ran, 'places are given back')
})
