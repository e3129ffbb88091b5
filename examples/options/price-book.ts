import { parseArgs } from 'node:util'
import { DurableSession, type BrokerClient } from '../../client/index.ts'
import { readBook, type Row } from './book.ts'
import { checkBook, MOST_STANDARD_ERRORS } from './check.ts'
import type { IOptionPricer } from './option-pricer.ts'
import { progress } from './progress.ts'

const DEFAULT_HEAD = 'http://127.0.0.1:8080'

/**
 * A durable session on real input: prices a book of 2,000 European options by Monte Carlo on as many service instances as there are,
 * and checks every price against the closed formula.
 *
 *     node dist/examples/options/price-book.js [--head URL] [--rows N] [--json] [--no-hint]
 *
 * Ends with 0 only if every row came back once, and within five standard errors of Black and Scholes.
 */

async function sendBook (client: BrokerClient<IOptionPricer>, book: readonly Row[]): Promise<void> {
  await Promise.all(book.map(({ type, ...option }, row) => client.send('Price', { ...option, isCall: type === 'call' }, { userData: String(row) })))
  await client.endRequests()
}

async function main (): Promise<number> {
  const { values } = parseArgs({ options: { head: { type: 'string' }, rows: { type: 'string' }, json: { type: 'boolean', default: false }, 'no-hint': { type: 'boolean', default: false }, help: { type: 'boolean', default: false } } })
  if (values.help) {
    console.log('Usage: price-book [--head URL] [--rows N] [--json] [--no-hint]\n  --head     the head to talk to; default SOA_HEAD, else http://127.0.0.1:8080\n  --rows     only the first N options\n  --json     one JSON document on stdout, everything else on stderr\n  --no-hint  no addresses, and not how to close the session: the broker is about to end')
    return 0
  }
  const rows = values.rows === undefined ? Infinity : Number(values.rows)
  if (rows !== Infinity && !(Number.isInteger(rows) && rows > 0)) { console.error(`--rows: a whole number above 0 is expected, not ${values.rows}`); return 2 }
  const head = values.head ?? process.env.SOA_HEAD ?? DEFAULT_HEAD
  const book = readBook(rows)
  const out = values.json ? process.stderr : process.stdout
  const count = book.length.toLocaleString('en')

  const session = await DurableSession.create({ service: 'OptionPricer', head })
  try {
    const client = session.client<IOptionPricer>('price-book')
    out.write(`durable session ${session.id}: pricing ${count} European options by Monte Carlo\n`)
    const bar = progress(out, book.length)
    const began = performance.now()
    await sendBook(client, book)
    const found = await checkBook(client.responses(), book, responses => bar.show(responses))
    const seconds = (performance.now() - began) / 1000
    bar.end()
    const { worst, wrong, instances } = found
    const isBrokerEnding = values['no-hint']
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
      ...(isBrokerEnding ? {} : { urls: { session: api, soap: session.endpoint, wsdl: `${session.endpoint}?wsdl` } })
    }
    for (const line of wrong.slice(0, 10)) out.write(`  wrong: ${line}\n`)
    if (wrong.length > 10) out.write(`  … and ${wrong.length - 10} more\n`)
    out.write([
      `  responses    ${found.responses.toLocaleString('en')} of ${count}, ${isRight ? 'each once and right' : `${wrong.length} WRONG`}`,
      `  worst error  ${worst.standardErrors.toFixed(2)} standard errors of at most ${MOST_STANDARD_ERRORS}; ${worst.money.toFixed(4)} in money (row ${worst.row})`,
      `  rate         ${summary.messagesPerSecond.toLocaleString('en')} msg/s (${seconds.toFixed(1)} s)`,
      `  instances    ${instances.size} used`,
      ...(isBrokerEnding
        ? [`  session      ${session.id}; its addresses go with the broker, which ends now`]
        : [
            `  session      ${api} (kept until: npm run -s soa -- session close ${session.id}${head.replace(/\/+$/, '') === DEFAULT_HEAD ? '' : ` --head ${head}`})`,
            `  SOAP         ${session.endpoint}`,
            `  WSDL         ${session.endpoint}?wsdl`
          ]),
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
