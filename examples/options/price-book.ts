import { parseArgs } from 'node:util'
import { DurableSession, type BrokerClient } from '../../client/index.ts'
import { blackScholes } from './black-scholes.ts'
import { readBook, type Row } from './book.ts'
import { progress } from './progress.ts'

/**
 * A durable session on real input: prices a book of 2,000 European options by Monte Carlo on as many service instances as there are,
 * and checks every price against the closed formula.
 *
 *     node dist/examples/options/price-book.js [--head URL] [--rows N] [--json]
 *
 * Ends with 0 only if every row came back once, and within five standard errors of Black and Scholes.
 */

/** The contract as a type, so that a misspelt field does not compile. `soa service types OptionPricer` prints it. */
interface OptionPricer {
  Price: {
    args: { spot: number, strike: number, rate: number, volatility: number, years: number, isCall: boolean, seed: number }
    result: { PriceResult?: { instance: string, price: number, standardError: number, taskId: string } | null }
  }
}

/** Chance of one right price beyond it: 1 in 1.7 million. */
const MOST_STANDARD_ERRORS = 5
/** What adding up tens of thousands of numbers may lose, as a share of the spot; counts where all paths end alike and the standard error is 0. */
const ROUNDING = 1e-9

interface Findings {
  responses: number
  /** Rows that never came, came more than once, came as a fault, or too far off; the first few, in words. */
  wrong: string[]
  worst: { row: number, standardErrors: number, money: number }
  instances: Set<string>
}

async function sendBook (client: BrokerClient<OptionPricer>, book: readonly Row[]): Promise<void> {
  await Promise.all(book.map(({ type, ...option }, row) => client.send('Price', { ...option, isCall: type === 'call' }, { userData: String(row) })))
  await client.endRequests()
}

/** Reads to the end and compares; `seen` hears how many there are so far. */
async function checkBook (client: BrokerClient<OptionPricer>, book: readonly Row[], seen: (responses: number) => void): Promise<Findings> {
  const times = new Uint32Array(book.length)
  const found: Findings = { responses: 0, wrong: [], worst: { row: -1, standardErrors: 0, money: 0 }, instances: new Set() }
  for await (const response of client.responses()) {
    seen(++found.responses)
    const row = Number(response.userData)
    const option = book[row]
    if (!option) { found.wrong.push(`a response to row ${response.userData}, which was not sent`); continue }
    times[row] = (times[row] ?? 0) + 1
    if (response.fault) { found.wrong.push(`row ${row}: ${response.fault.message}`); continue }
    const quote = response.result().PriceResult
    if (!quote) { found.wrong.push(`row ${row}: no price`); continue }
    found.instances.add(quote.instance)
    const money = Math.abs(quote.price - blackScholes(option))
    const standardErrors = money / (quote.standardError + ROUNDING * option.spot)
    if (!(standardErrors <= MOST_STANDARD_ERRORS)) found.wrong.push(`row ${row}: ${quote.price} is ${standardErrors.toFixed(2)} standard errors from ${blackScholes(option)}`)
    if (standardErrors > found.worst.standardErrors) found.worst = { row, standardErrors, money }
  }
  times.forEach((n, row) => { if (n !== 1) found.wrong.push(`row ${row} came ${n} times`) })
  return found
}

async function main (): Promise<number> {
  const { values } = parseArgs({ options: { head: { type: 'string' }, rows: { type: 'string' }, json: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } } })
  if (values.help) {
    console.log('Usage: price-book [--head URL] [--rows N] [--json]\n  --head   the head to talk to; default SOA_HEAD, else http://127.0.0.1:8080\n  --rows   only the first N options\n  --json   one JSON document on stdout, everything else on stderr')
    return 0
  }
  const rows = values.rows === undefined ? Infinity : Number(values.rows)
  if (rows !== Infinity && !(Number.isInteger(rows) && rows > 0)) { console.error(`--rows: a whole number above 0 is expected, not ${values.rows}`); return 2 }
  const head = values.head ?? process.env.SOA_HEAD ?? 'http://127.0.0.1:8080'
  const book = readBook(rows)
  const out = values.json ? process.stderr : process.stdout
  const count = book.length.toLocaleString('en')

  const session = await DurableSession.create({ service: 'OptionPricer', head })
  try {
    const client = session.client<OptionPricer>('price-book')
    out.write(`durable session ${session.id}: pricing ${count} European options by Monte Carlo\n`)
    const bar = progress(out, book.length)
    const began = performance.now()
    await sendBook(client, book)
    const found = await checkBook(client, book, responses => bar.show(responses))
    const seconds = (performance.now() - began) / 1000
    bar.end()
    const { worst, wrong, instances } = found
    const isRight = wrong.length === 0 && found.responses === book.length
    const api = `${head.replace(/\/+$/, '')}/api/v1/sessions/${session.id}`
    const summary = {
      sessionId: session.id,
      sent: book.length,
      responses: found.responses,
      isRight,
      wrong: wrong.length,
      worstError: worst,
      messagesPerSecond: Math.round(found.responses / seconds),
      seconds: Number(seconds.toFixed(3)),
      instances: instances.size,
      urls: { session: api, soap: session.endpoint, wsdl: `${session.endpoint}?wsdl` }
    }
    for (const line of wrong.slice(0, 10)) out.write(`  wrong: ${line}\n`)
    if (wrong.length > 10) out.write(`  … and ${wrong.length - 10} more\n`)
    out.write([
      `  responses    ${found.responses.toLocaleString('en')} of ${count}, ${isRight ? 'each once and right' : `${wrong.length} WRONG`}`,
      `  worst error  ${worst.standardErrors.toFixed(2)} standard errors of at most ${MOST_STANDARD_ERRORS}; ${worst.money.toFixed(4)} in money (row ${worst.row})`,
      `  rate         ${summary.messagesPerSecond.toLocaleString('en')} msg/s (${seconds.toFixed(1)} s)`,
      `  instances    ${instances.size} used`,
      `  session      ${summary.urls.session} (kept until: soa session close ${session.id})`,
      `  SOAP         ${summary.urls.soap}`,
      `  WSDL         ${summary.urls.wsdl}`,
      ''
    ].join('\n'))
    if (values.json) console.log(JSON.stringify(summary))
    return isRight ? 0 : 1
  } finally {
    await session.detach()
  }
}

process.exitCode = await main().catch((error: unknown) => {
  console.error(`price-book: ${error instanceof Error ? error.message : String(error)}`)
  return 1
})
