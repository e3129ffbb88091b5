import fastify from 'fastify'
import { readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { Figures, WorkerFigures } from '../../broker/contract.ts'
import { metricsRoute } from '../../broker/head/metrics.ts'
import { METRICS, metricsMarkdown } from '../../broker/head/metrics-table.ts'
import { FigureBook, OTHERS } from '../../broker/head/worker-figures.ts'
import { SessionCounters } from '../../broker/worker/counters.ts'
import { asset } from '../../core/assets.ts'
import { silent } from '../../core/log.ts'
import type { NodeView } from '../../store/redis-placement.ts'
import { ManualClock } from '../clock.ts'

const NOW: Figures['now'] = { sessions: 0, queued: 0, processing: 0, replaying: 0, dispatchers: 0, starting: 0, running: 0, leaving: 0, blocked: 0 }
const figures = (grown: Partial<Figures['grown']>, now: Partial<Figures['now']> = {}): Figures => ({ grown: { ...new SessionCounters().grown(), ...grown }, now: { ...NOW, ...now } })
const stored = (book: FigureBook, service = 'Echo'): number | undefined => book.view().get(service)?.grown.stored

t.test('metrics: sums never go down: not when sessions end, nor when workers do, nor when two answers cross', async t => {
  const book = new FigureBook()
  book.told('w1', { Echo: figures({ stored: 5 }, { sessions: 1 }) }, false)
  book.told('w2', { Echo: figures({ stored: 7 }) }, false)
  t.equal(stored(book), 12)
  t.equal(book.view().get('Echo')?.now?.sessions, 1)
  book.told('w1', { Echo: figures({ stored: 9 }) }, false)
  book.told('w1', { Echo: figures({ stored: 8 }) }, false)
  t.equal(stored(book), 16, 'an older answer that comes late takes nothing back')
  book.gone('w1')
  book.gone('w1')
  book.told('w3', { Echo: figures({ stored: 1 }) }, false)
  t.equal(stored(book), 17)
  for (const id of ['w2', 'w3']) book.gone(id)
  t.strictSame([stored(book), book.view().get('Echo')?.now], [17, undefined])
})

t.test('metrics: a worker of an earlier head counts from when it was first asked, one of an older version not at all', async t => {
  const book = new FigureBook()
  book.told('old', { Echo: figures({ stored: 100 }) }, true)
  t.equal(stored(book), 0)
  book.told('old', { Echo: figures({ stored: 103 }), Other: figures({ stored: 2 }) }, true)
  t.strictSame([stored(book), stored(book, 'Other')], [3, 2])
  book.gone('old')
  t.equal(stored(book), 3)
  book.told('older', undefined, true)
  book.gone('older')
  t.equal(stored(book), 3)
})

t.test('metrics: more services than anybody registers are counted together', async t => {
  const book = new FigureBook()
  const many: WorkerFigures = Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`S${i}`, figures({ stored: 1 })]))
  book.told('w', many, false)
  t.equal(book.view().size, 501)
  t.equal(stored(book, OTHERS), 100)
  book.gone('w')
  t.strictSame([book.view().size, stored(book, OTHERS)], [501, 100])
})

interface Scraped { scrape: () => Promise<string>, reads: { nodes: number, states: number, figures: number }, clock: ManualClock }

async function scraped (t: Test, seen: { figures?: WorkerFigures, nodes?: NodeView[] } = {}): Promise<Scraped> {
  const app = fastify()
  t.teardown(() => app.close())
  const clock = new ManualClock()
  const reads = { nodes: 0, states: 0, figures: 0 }
  const book = new FigureBook()
  metricsRoute(app, {
    sessions: { countByState: async () => { reads.states++; return { Running: 3, Suspended: 40 } } },
    nodes: { nodes: async () => { reads.nodes++; return seen.nodes ?? [] } },
    pool: { workers: [], sessions: 3, figures: async () => { reads.figures++; book.told('w', seen.figures, false); return book.view() } },
    clock,
    log: silent
  })
  return { reads, clock, scrape: async () => (await app.inject('/metrics')).body }
}

t.test('metrics: each row of the table is shown with its kind and help, of nodes and sessions by state and of brokers by service', async t => {
  const node: NodeView = { id: 'n', machine: 'm', pid: 1, state: 'Draining', cores: 8, busy: 3, tasks: 2, heartbeatAgeMs: 1, groups: [], labels: {} }
  const { scrape } = await scraped(t, { figures: { Echo: figures({ received: 9, stored: 7, callSeconds: 1.5 }, { queued: 2, running: 4 }), 'Q"uote': figures({ stored: 1 }) }, nodes: [node] })
  for (let n = 0; n < 2; n++) {
    const text = await scrape()
    for (const [name, { kind, help }] of Object.entries(METRICS)) t.ok(text.includes(`# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`), name)
    const lines = text.split('\n')
    for (const line of [
      'soa_sessions{state="Running"} 3', 'soa_sessions{state="Suspended"} 40', 'soa_sessions{state="Failed"} 0', 'soa_nodes{state="Draining"} 1', 'soa_nodes{state="Online"} 0', 'soa_slots 8', 'soa_slots_busy 3', 'soa_tasks 2',
      'soa_worker_sessions 3', 'soa_requests_received_total{service="Echo"} 9', 'soa_responses_stored_total{service="Echo"} 7', 'soa_responses_stored_total{service="Q\\"uote"} 1',
      'soa_call_seconds_total{service="Echo"} 1.5', 'soa_requests_queued{service="Echo"} 2', 'soa_instances_running{service="Echo"} 4'
    ]) t.ok(lines.includes(line), `scrape ${n + 1}: ${line}`)
  }
})

t.test('metrics: nodes are read once for scrapes that follow each other, and scrapes at a time share one look', async t => {
  const { scrape, reads, clock } = await scraped(t)
  const [a, b] = await Promise.all([scrape(), scrape()])
  t.match(a, /soa_workers 0/)
  t.match(b, /soa_workers 0/)
  t.strictSame(reads, { nodes: 1, states: 1, figures: 1 })
  await scrape()
  t.strictSame(reads, { nodes: 1, states: 2, figures: 2 }, 'what brokers say is never old')
  await clock.advance(2000)
  await scrape()
  t.equal(reads.nodes, 2)
})

t.test('metrics: docs/operations.md has the table, and nothing else by these names', async t => {
  const file = asset('docs/operations.md')
  const page = readFileSync(file, 'utf8')
  const [begin, end] = ['<!-- begin: metrics -->\n', '\n<!-- end: metrics -->']
  const [from, to] = [page.indexOf(begin) + begin.length, page.indexOf(end)]
  t.ok(from >= begin.length && to > from, 'the marks are there')
  const printed = `${page.slice(0, from)}${metricsMarkdown()}${page.slice(to)}`
  if (process.env.UPDATE_DOCS !== undefined) writeFileSync(file, printed)
  else t.equal(page, printed, 'UPDATE_DOCS=1 node dist/test/head/metrics.test.js writes it anew')
  for (const [name] of page.matchAll(/\bsoa_[a-z_]+\b/g)) t.ok(name in METRICS, `${name} is one of the table`)
})
