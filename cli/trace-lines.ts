import type { MessageTrace, Spread, TraceAnswer, TraceLine, TraceStep } from '../broker/contract.ts'
import { facts, oneLine, table } from './io.ts'

/** One message for people: what it is, and its steps with their times. */
export function messageLines (message: MessageTrace): string[] {
  const { messageId, clientId, seq, action, userData, state, tries, from } = message
  return [
    ...facts([
      ['message', oneLine(messageId, 200)],
      ['client', clientId === '' ? '(default)' : oneLine(clientId, 128)],
      ['place', seq === 0 ? 'none: a call in the same exchange' : seq],
      ['action', oneLine(action, 200)],
      ['user data', userData === undefined ? undefined : oneLine(userData, 200)],
      ['state', state],
      ['runs', tries],
      ['known', from === 'store' ? 'from the store alone: this broker has not seen it run' : undefined]
    ]),
    '',
    ...table(['STEP', 'AT', 'SINCE THE LAST', ''], message.steps.map(step => [step.step, step.at ?? '(not kept)', step.sinceMs === undefined ? '' : `+${duration(step.sinceMs)}`, detail(step)]))
  ]
}

function detail ({ step, try: nth, taskId, node, address, outcome, why, then, times }: TraceStep): string {
  const where = taskId === undefined ? '' : `task ${taskId}${node === undefined ? '' : ` on ${node}`}${address === undefined ? '' : `, ${address}`}`
  switch (step) {
    case 'dispatched': return `run ${nth ?? '?'}: ${where}`
    case 'replied': return nth === undefined ? '' : `run ${nth}`
    case 'failed': return [`${nth === undefined ? where : `run ${nth}`}: ${outcome ?? ''}`, then, why === undefined ? undefined : oneLine(why, 120)].filter(part => part !== undefined).join('; ')
    case 'delivered': return times === undefined || times <= 1 ? '' : `the first of ${times} times`
    default: return ''
  }
}

export function searchLines ({ items = [], looked = 0, next }: TraceAnswer): string[] {
  return [
    ...(items.length === 0 ? [] : list(items)),
    `${items.length} of the ${looked} message${looked === 1 ? '' : 's'} that the search has looked at ${items.length === 1 ? 'is' : 'are'} as asked for; ${next === undefined ? 'there are no more' : `it goes on with --cursor '${next}'`}`
  ]
}

export function sessionLines ({ summary, latest = [], slowest = [], failed = [] }: TraceAnswer): string[] {
  if (summary === undefined) return []
  const { traced, most, forgotten, since, waiting, running, answered, faulted, waitMs, runMs, storeMs, totalMs } = summary
  const spread = (of: Spread | undefined): string | undefined => of === undefined ? undefined : `half within ${duration(of.p50)}, 95 % within ${duration(of.p95)}, longest ${duration(of.max)}`
  return [
    ...facts([
      ['messages', `${waiting} waiting, ${running} running, ${answered} answered, ${faulted} faulted`],
      ['traced', most === 0 ? 'none (traceMessages is 0)' : `${traced} of at most ${most} since ${since}${forgotten === 0 ? '' : `; ${forgotten} older ones are forgotten (traceMessages)`}`],
      ['waiting', spread(waitMs)],
      ['running', spread(runMs)],
      ['storing', spread(storeMs)],
      ['in all', spread(totalMs)]
    ]),
    ...titled('latest', latest), ...titled('slowest', slowest), ...titled('failed', failed)
  ]
}

const titled = (title: string, lines: TraceLine[]): string[] => lines.length === 0 ? [] : ['', `${title}:`, ...list(lines)]

const list = (lines: readonly TraceLine[]): string[] => table(
  ['MESSAGE', 'CLIENT', 'USER DATA', 'STATE', 'RECEIVED', 'WAITED', 'RAN', 'IN ALL', 'RUNS', 'TASK', 'NODE', 'FAILED'],
  lines.map(line => [
    oneLine(line.messageId, 60), line.clientId === '' ? '(default)' : oneLine(line.clientId, 40), oneLine(line.userData ?? '', 40), line.state, line.receivedAt ?? '',
    known(line.waitMs), known(line.runMs), known(line.totalMs), line.tries ?? '', line.taskId ?? '', line.node ?? '', line.outcome ?? ''
  ]))

const known = (ms: number | undefined): string => ms === undefined ? '' : duration(ms)

/** 12 ms · 3.456 s · 2 min 5 s · 3 h 20 min */
export function duration (ms: number): string {
  if (ms < 1000) return `${ms} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(3)} s`
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor(ms % 60_000 / 1000)} s`
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor(ms % 3_600_000 / 60_000)} min`
}
