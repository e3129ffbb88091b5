import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { SESSION } from '../../broker/head/session.states.ts'
import { BROKER_CLIENT } from '../../broker/worker/broker-client.states.ts'
import { PROGRAM } from '../../broker/worker/custom-program.states.ts'
import { TASK_REACTIONS } from '../../broker/worker/dispatcher-pool.ts'
import { OUTCOMES, REPLIES } from '../../broker/worker/retry.ts'
import { BROKER } from '../../broker/worker/session.states.ts'
import { PREPARATION } from '../../node-manager/preparation.states.ts'
import { TASK } from '../../node-manager/task.states.ts'
import { NODE_STATES } from '../../store/node.states.ts'
import { CLIENT_FRAMES, SERVER_FRAMES } from '../../wire/framing/frames.states.ts'

type States = Readonly<Record<string, Readonly<Record<string, string>>>>

const MACHINES: ReadonlyArray<readonly [title: string, file: string, table: States]> = [
  ['A session, as its record says', 'broker/head/session.states.ts', SESSION],
  ['The broker of a session', 'broker/worker/session.states.ts', BROKER],
  ['A broker client', 'broker/worker/broker-client.states.ts', BROKER_CLIENT],
  ['The program of a custom broker', 'broker/worker/custom-program.states.ts', PROGRAM],
  ['A task on its node', 'node-manager/task.states.ts', TASK],
  ['What a node has done for a session', 'node-manager/preparation.states.ts', PREPARATION],
  ['What a net.tcp client sends', 'wire/framing/frames.states.ts', CLIENT_FRAMES],
  ['What a net.tcp server sends', 'wire/framing/frames.states.ts', SERVER_FRAMES],
]

function markdown (): string {
  const machines = MACHINES.map(([title, file, table]) => {
    const rows = Object.entries(table).map(([state, events]) => `| ${state} | ${Object.entries(events).map(([event, to]) => `${event} → ${to}`).join(' · ') || 'the end'} |`)
    return `## ${title}\n\n\`${file}\`\n\n| state | event → next state |\n| --- | --- |\n${rows.join('\n')}\n`
  })
  const nodes = Object.entries(NODE_STATES).map(([state, { says, when }]) => `| ${state} | ${says} | ${when} |`)
  const reactions = Object.entries(TASK_REACTIONS).map(([state, { does }]) => `| ${state} | ${does} |`)
  const yesNo = (is: boolean): string => is ? 'yes' : 'no'
  const COSTS = { try: 'a try', uncountedTry: 'an uncounted try', nothing: 'nothing' } as const
  const outcomes = Object.entries(OUTCOMES).map(([outcome, { when, costs, mayHaveRun, keepsInstance }]) => `| ${outcome} | ${when} | ${COSTS[costs]} | ${yesNo(mayHaveRun)} | ${yesNo(keepsInstance)} |`)
  const replies = Object.entries(REPLIES).map(([reply, { when, keepsInstance }]) => `| ${reply} | ${when} | stored as the response, never tried again | ${yesNo(keepsInstance)} |`)
  return `# States

Printed from the tables that are the code; \`test/house/states.test.ts\` compares them (and writes this page when UPDATE_DOCS is set).

${machines.join('\n')}
## A node, as it is shown

\`store/node.states.ts\`: the first that fits.

| state | tasks | when |
| --- | --- | --- |
${nodes.join('\n')}

## What a task's state does to its dispatcher

\`broker/worker/dispatcher-pool.ts\`

| TaskStateChanged | dispatcher |
| --- | --- |
${reactions.join('\n')}

## What a failed call means

\`broker/worker/retry.ts\`

| outcome | when | costs | may have run | instance goes on |
| --- | --- | --- | --- | --- |
${outcomes.join('\n')}

A request goes back to the queue until its tries are used up: those that count by messageResendLimit (0: it runs once at most, so whatever may have run is given up),
the uncounted ones by maxUncountedTries. Then its response is a RetryOperationError, and it is kept as a dead letter.

| reply | when | request | instance goes on |
| --- | --- | --- | --- |
${replies.join('\n')}
`
}

t.test('docs/states.md is what the tables say', async t => {
  const file = asset('docs/states.md')
  if (process.env.UPDATE_DOCS !== undefined) writeFileSync(file, markdown())
  t.equal(readFileSync(file, 'utf8'), markdown())
})

t.test('every state of every table can be reached from its first, and every event leads to a state that is there', async t => {
  for (const [title, , table] of MACHINES) {
    const reached = new Set([Object.keys(table)[0] as string])
    for (const state of reached) for (const to of Object.values(table[state] ?? {})) reached.add(to)
    t.same([...reached].sort(), Object.keys(table).sort(), title)
  }
})
