import t from 'tap'
import { judge, OUTCOMES, type Outcome } from '../../broker/worker/retry.ts'

t.test('retry: a limit of 3 means at most four executions that count', async t => {
  const actions: string[] = []
  let tries = 0
  for (let run = 1; run <= 4; run++) {
    const verdict = judge('timedOut', tries, 3)
    actions.push(verdict.action)
    tries = verdict.tries
  }
  t.same(actions, ['requeue', 'requeue', 'requeue', 'giveUp'])
  t.equal(tries, 4)
})

t.test('retry: what is nobody\'s fault never counts, however often it happens', async t => {
  for (const outcome of ['instanceUnreachable', 'taskTakenAway', 'preempted', 'initializeFailed'] as const) {
    t.same(judge(outcome, 3, 3), { action: 'requeue', tries: 3, keepsInstance: false }, outcome)
  }
})

t.test('retry: a limit of 0 runs a request at most once, even when its host was taken away', async t => {
  const expected: Record<Outcome, 'requeue' | 'giveUp'> = {
    serviceAskedRetry: 'giveUp',
    timedOut: 'giveUp',
    badReply: 'giveUp',
    instanceFailed: 'giveUp',
    taskTakenAway: 'giveUp', // it may have run
    initializeFailed: 'requeue', // there was no service to run it
    instanceUnreachable: 'requeue', // the service never saw it
    preempted: 'requeue', // the host says that it skipped it
  }
  for (const outcome of Object.keys(OUTCOMES) as Outcome[]) t.equal(judge(outcome, 0, 0).action, expected[outcome], outcome)
})
