import type { KeptHead } from '../../store/trace-facts.ts'
import { shownUserData } from '../../store/pack.ts'
import type { MessageState, MessageTrace, Spread, TraceLine, TraceStep, TraceSummary } from '../contract.ts'
import { isoTime } from './trace.ts'
import type { TraceRow } from './trace-row.ts'

/** What is known of one message: its row in this broker, what the store has, or both. */
export interface Known {
  readonly clientId: string
  readonly row: TraceRow | undefined
  readonly head: KeptHead | undefined
  /** Of a request without a row: whether it may run, and since when. */
  readonly isQueued: boolean
  readonly queuedAt: number | undefined
  readonly delivery?: { readonly at: number, readonly times: number } | undefined
}

export function stateOf ({ row, head, isQueued }: Known): MessageState {
  if (row !== undefined && (head?.at === undefined || row.answeredAt !== undefined)) {
    if (row.runs.some(run => run.endedAt === undefined)) return 'running'
    if (row.answeredAt !== undefined) return row.isFault ? 'faulted' : 'answered'
    return row.repliedAt === undefined ? 'waiting' : 'running'
  }
  if (head?.at !== undefined) return head.isFault ? 'faulted' : 'answered'
  return isQueued ? 'waiting' : 'received'
}

export function lineOf (known: Known): TraceLine {
  const { clientId, row, head } = known
  const facts = head?.trace
  const first = row?.runs[0]
  const last = row === undefined ? undefined : row.runs.findLast(run => run.outcome === undefined) ?? row.runs.at(-1)
  const receivedAt = row?.receivedAt ?? facts?.receivedAt ?? head?.receivedAt
  const queuedAt = row?.queuedAt ?? facts?.queuedAt ?? known.queuedAt
  const endedAt = row?.answeredAt ?? facts?.repliedAt
  return {
    messageId: row?.messageId ?? head?.messageId ?? '',
    clientId,
    seq: row?.seq ?? head?.seq ?? 0,
    action: row?.action ?? head?.action ?? '',
    userData: head && shownUserData(head.userData),
    state: stateOf(known),
    receivedAt: receivedAt === undefined ? undefined : isoTime(receivedAt),
    // Of several runs the store has only the last one's time, which says nothing of the wait before the first.
    waitMs: between(queuedAt ?? receivedAt, first?.nth === 1 ? first.at : facts?.tries === 1 ? facts.dispatchedAt : undefined),
    runMs: row === undefined ? between(facts?.dispatchedAt, facts?.repliedAt) : between(last?.at, last?.endedAt),
    totalMs: between(receivedAt, endedAt),
    tries: row?.tries ?? facts?.tries,
    taskId: last?.place.taskId ?? facts?.taskId ?? facts?.failed?.at(-1)?.taskId,
    node: last?.place.node ?? facts?.node ?? facts?.failed?.at(-1)?.node,
    outcome: row?.runs.findLast(run => run.outcome !== undefined)?.outcome ?? facts?.failed?.at(-1)?.outcome,
    isDelivered: row?.answeredAt === undefined ? undefined : row.seq === 0 || known.delivery !== undefined,
  }
}

export function messageOf (known: Known): MessageTrace {
  const { row } = known
  const steps = row === undefined ? storedSteps(known) : rowSteps(row, known.delivery)
  let last: number | undefined
  for (const step of steps) {
    if (step.at === null) continue
    const at = Date.parse(step.at)
    step.sinceMs = between(last, at)
    last = at
  }
  return { ...lineOf(known), from: row === undefined ? 'store' : 'memory', steps }
}

function rowSteps (row: TraceRow, delivery: Known['delivery']): TraceStep[] {
  const ends: TraceStep[] = row.runs.flatMap(({ place: { taskId, node, address }, nth, at, endedAt, outcome, why, action }) => {
    const run: TraceStep = { step: 'dispatched', at: isoTime(at), try: nth, taskId, node, address }
    if (endedAt === undefined) return [run]
    return [run, outcome === undefined
      ? { step: 'replied' as const, at: isoTime(endedAt), try: nth, taskId }
      : { step: 'failed' as const, at: isoTime(endedAt), try: nth, taskId, outcome, why, then: action === 'giveUp' ? 'given up' as const : 'put back' as const }]
  })
  // Runs may overlap (multiEmissionDelayTime).
  ends.sort((a, b) => Date.parse(a.at as string) - Date.parse(b.at as string))
  return [
    ...step('received', row.receivedAt), ...step('queued', row.queuedAt), ...ends, ...step('answered', row.answeredAt),
    ...step('delivered', delivery?.at).map(delivered => ({ ...delivered, times: delivery?.times })),
  ]
}

function storedSteps ({ head, isQueued, queuedAt }: Known): TraceStep[] {
  if (head?.at === undefined) return [...step('received', head?.receivedAt), ...(isQueued ? [{ step: 'queued' as const, at: queuedAt === undefined ? null : isoTime(queuedAt) }] : [])]
  const { trace } = head
  if (trace === undefined) return [{ step: 'answered', at: null }]
  const { receivedAt, dispatchedAt, repliedAt, tries, taskId, node, failed = [] } = trace
  return [
    ...step('received', receivedAt), ...step('queued', trace.queuedAt),
    ...failed.map(toStep),
    ...step('dispatched', dispatchedAt).map(run => ({ ...run, try: tries, taskId, node })),
    ...(dispatchedAt === undefined ? [] : step('replied', repliedAt)),
    { step: 'answered', at: null },
  ]
}

const toStep = ({ at, taskId, node, outcome, why }: { at: string, taskId: string, node: string, outcome: string, why: string }): TraceStep => ({ step: 'failed', at, taskId, node, outcome, why })
const step = (name: TraceStep['step'], at: number | undefined): TraceStep[] => at === undefined ? [] : [{ step: name, at: isoTime(at) }]
const between = (from: number | undefined, to: number | undefined): number | undefined => from === undefined || to === undefined ? undefined : Math.max(0, to - from)

/** How long the steps of what was traced took. */
export function spreads (rows: readonly TraceRow[]): Pick<TraceSummary, 'waitMs' | 'runMs' | 'storeMs' | 'totalMs'> {
  const of = (ms: (row: TraceRow) => number | undefined): Spread | undefined => spread(rows.map(ms).filter(value => value !== undefined))
  return {
    waitMs: of(row => row.runs[0]?.nth === 1 ? between(row.queuedAt ?? row.receivedAt, row.runs[0].at) : undefined),
    runMs: of(row => { const run = row.runs.findLast(run => run.endedAt !== undefined && run.outcome === undefined); return between(run?.at, run?.endedAt) }),
    storeMs: of(row => row.seq === 0 ? undefined : between(row.repliedAt, row.answeredAt)),
    totalMs: of(row => between(row.receivedAt, row.answeredAt)),
  }
}

function spread (values: number[]): Spread | undefined {
  if (values.length === 0) return undefined
  values.sort((a, b) => a - b)
  const at = (part: number): number => values[Math.ceil(part * values.length) - 1] as number
  return { p50: at(0.5), p95: at(0.95), max: at(1) }
}
