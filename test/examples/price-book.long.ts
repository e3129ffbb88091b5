import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { SoapFaultError } from '../../client/index.ts'
import { blackScholes, normal } from '../../examples/options/black-scholes.ts'
import { readBook, type Row } from '../../examples/options/book.ts'
import { checkBook } from '../../examples/options/check.ts'
import { asset } from '../../core/assets.ts'
import { loadWsdl } from '../../wsdl/document.ts'
import { typescriptOf } from '../../wsdl/typescript.ts'
import { Cluster } from '../e2e/cluster.ts'

t.setTimeout(300_000)

// Abramowitz and Stegun, Handbook of Mathematical Functions, table 26.1.
for (const [x, expected] of [[0, 0.5], [1, 0.841344746068543], [2, 0.977249868051821], [-1, 0.158655253931457], [3, 0.998650101968370], [-5, 2.866515719e-7]] as const) {
  t.test(`normal distribution: ${x}`, async t => t.ok(Math.abs(normal(x) - expected) < 1e-12, `${normal(x)}`))
}

t.test('Black-Scholes: Hull\'s example, and put-call parity', async t => {
  const option = { spot: 42, strike: 40, rate: 0.1, volatility: 0.2, years: 0.5 }
  const call = blackScholes({ ...option, type: 'call' })
  const put = blackScholes({ ...option, type: 'put' })
  t.equal(call.toFixed(2), '4.76')
  t.equal(put.toFixed(2), '0.81')
  t.ok(Math.abs(call - put - (42 - 40 * Math.exp(-0.05))) < 1e-12)
})

t.test('book: 2,000 options, each with a seed of its own', async t => {
  const book = readBook()
  t.equal(book.length, 2000)
  t.equal(new Set(book.map(row => row.seed)).size, 2000)
  t.equal(readBook(3).length, 3)
})

t.test('check: every row once and near is right; a row that is missing, doubled, a fault or too far off is not', async t => {
  const book = readBook(3)
  const quote = (row: number, standardErrors = 1) => ({
    userData: String(row),
    result: () => ({ PriceResult: { instance: `i${row}`, price: blackScholes(book[row] as Row) + standardErrors * 0.01, standardError: 0.01, taskId: '1' } })
  })
  async function wrong (t: Test, responses: unknown[], what: RegExp[]): Promise<void> {
    const found = await checkBook((async function * () { yield * responses as Array<ReturnType<typeof quote>> })(), book)
    t.equal(found.wrong.length, what.length, found.wrong.join('; '))
    found.wrong.forEach((text, i) => t.match(text, what[i]))
  }
  await wrong(t, [quote(2), quote(0, 4.9), quote(1, -4.9)], [])
  await wrong(t, [quote(0), quote(2)], [/row 1 came 0 times/])
  await wrong(t, [quote(0), quote(1), quote(2), quote(1)], [/row 1 came 2 times/])
  await wrong(t, [quote(0), quote(1, 5.1), quote(2)], [/row 1: .* 5\.10 standard errors/])
  await wrong(t, [quote(0), quote(1, NaN), quote(2)], [/row 1: NaN/])
  await wrong(t, [quote(0), quote(2), { userData: '1', fault: new SoapFaultError({ code: 'Receiver', reason: 'disk full' }) }], [/row 1: disk full/])
  await wrong(t, [quote(0), quote(1), quote(2), { userData: '7' }], [/row 7, which was not sent/])
})

t.test('price-book: prices part of the book on a grid, and says so in JSON', async t => {
  const cluster = await Cluster.start(t)
  const program = fileURLToPath(new URL('../../examples/options/price-book.js', import.meta.url))
  const price = async (...args: string[]): Promise<{ code: number, stdout: string, stderr: string }> => await new Promise(resolve => {
    execFile(process.execPath, [program, '--head', cluster.head, ...args, '--json'], (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }))
  })
  const { code, stdout, stderr } = await price('--rows', '200')
  t.equal(code, 0, stderr)
  t.match(JSON.parse(stdout), { sent: 200, responses: 200, isRight: true, wrong: 0, urls: { soap: RegExp(`^${cluster.head}/\\d+/Http$`) } })
  t.match(stderr, /10 % \(20 of 200 responses\)[^]*100 % \(200 of 200 responses\)/)
  t.match(stderr, RegExp(`\\(kept until: npm run -s soa -- session close \\d+ --head ${cluster.head}\\)`))

  const ending = await price('--rows', '20', '--no-hint')
  t.notMatch(ending.stdout + ending.stderr, /https?:/, 'no address of a broker that is about to end')
  t.match(ending.stderr, /session {6}\d+; its addresses go with the broker, which ends now/)

  const scraped = async (): Promise<Record<string, number>> => Object.fromEntries((await (await fetch(`${cluster.head}/metrics`)).text()).split('\n')
    .flatMap(line => { const [, name, value] = /^(soa_\w+)\{service="OptionPricer"\} (\S+)$/.exec(line) ?? []; return name === undefined ? [] : [[name, Number(value)]] }))
  const counted = {
    soa_requests_received_total: 220,
    soa_requests_flushed_total: 220,
    soa_responses_stored_total: 220,
    soa_responses_direct_total: 0,
    soa_faults_total: 0,
    soa_dead_letters_total: 0,
    soa_requests_queued: 0,
    soa_requests_processing: 0
  }
  const before = await scraped()
  t.match(before, { ...counted, soa_served_sessions: 2, soa_responses_fetched_total: 220 }, 'metrics count each request once')
  t.ok((before.soa_calls_total ?? 0) >= 220 && (before.soa_call_seconds_total ?? 0) > 0 && (before.soa_store_batches_total ?? 0) > 0 && (before.soa_instances_running ?? 0) > 0)
  for (const { sessionId } of [JSON.parse(stdout), JSON.parse(ending.stdout)] as Array<{ sessionId: string }>) await fetch(`${cluster.head}/api/v1/sessions/${sessionId}`, { method: 'DELETE' })
  const after = await scraped()
  t.match(after, { ...counted, soa_served_sessions: 0, soa_responses_fetched_total: 220, soa_instances_running: 0, soa_dispatchers: 0 }, 'what ended sessions have done stays')
  for (const [name, value] of Object.entries(before)) if (name.endsWith('_total')) t.ok((after[name] ?? 0) >= value, name)
})

t.test('price-book: its types are those that "soa service types" prints for the service', async t => {
  const wsdl = asset('examples/services/OptionPricer/OptionPricer.wsdl')
  t.equal(readFileSync(asset('examples/options/option-pricer.ts'), 'utf8'), typescriptOf(loadWsdl({ [wsdl]: readFileSync(wsdl, 'utf8') }, wsdl), 'OptionPricer.wsdl'))
})
