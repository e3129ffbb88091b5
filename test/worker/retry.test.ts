import t from 'tap'
import { judge, OUTCOMES, type Outcome, type Spent } from '../../broker/worker/retry.ts'

const NOTHING: Spent = { tries: 0, uncounted: 0 }
const outcomes = Object.keys(OUTCOMES) as Outcome[]

t.test('retry: a limit of 3 means at most four executions that count', async t => {
  const actions: string[] = []
  let spent = NOTHING
  for (let run = 1; run <= 4; run++) {
    const verdict = judge('timedOut', spent, { resendLimit: 3, maxUncounted: 10 })
    actions.push(verdict.action)
    spent = verdict
  }
  t.same(actions, ['requeue', 'requeue', 'requeue', 'giveUp'])
  t.equal(spent.tries, 4)
})

t.test('retry: what is nobody\'s fault is not held against the limit, and ends with the tenth time', async t => {
  for (const outcome of ['taskTakenAway', 'preempted', 'waitedAtHost'] as const) {
    let spent: Spent = { tries: 3, uncounted: 0 }
    const actions: string[] = []
    for (let run = 1; run <= 10; run++) {
      const verdict = judge(outcome, spent, { resendLimit: 3, maxUncounted: 10 })
      actions.push(verdict.action)
      spent = verdict
    }
    t.same(actions, [...Array.from({ length: 9 }, () => 'requeue'), 'giveUp'], outcome)
    t.same({ tries: spent.tries, uncounted: spent.uncounted }, { tries: 3, uncounted: 10 })
    t.equal(judge(outcome, { tries: 0, uncounted: 1000 }, { resendLimit: 3, maxUncounted: 0 }).action, 'requeue', '0 is no limit')
  }
})

t.test('retry: what the service never had costs nothing, however often it happens, and after whatever', async t => {
  for (const outcome of outcomes.filter(outcome => OUTCOMES[outcome].costs === 'nothing')) {
    t.match(judge(outcome, { tries: 3, uncounted: 9 }, { resendLimit: 3, maxUncounted: 10 }), { action: 'requeue', tries: 3, uncounted: 9, keepsInstance: false }, outcome)
  }
})

t.test('retry: a limit of 0 runs a request at most once, even when its host was taken away', async t => {
  const expected: Record<Outcome, 'requeue' | 'giveUp'> = {
    serviceAskedRetry: 'giveUp',
    timedOut: 'giveUp',
    badReply: 'giveUp',
    instanceFailed: 'giveUp',
    waitedAtHost: 'giveUp', // the answer to the one before it may have been lost, and this one have begun
    taskTakenAway: 'giveUp', // it may have run
    initializeFailed: 'requeue', // there was no service to run it
    instanceUnreachable: 'requeue', // the service never saw it
    preempted: 'requeue', // the host says that it skipped it
  }
  for (const outcome of outcomes) t.equal(judge(outcome, NOTHING, { resendLimit: 0, maxUncounted: 10 }).action, expected[outcome], outcome)
})
