import type { Response } from '../../client/index.ts'
import { blackScholes } from './black-scholes.ts'
import type { Row } from './book.ts'
import type { IOptionPricer } from './option-pricer.ts'

/** Chance that a right price lies beyond it: 1 in 1.7 million. */
export const MOST_STANDARD_ERRORS = 5
/** What adding up tens of thousands of numbers may lose, as a share of the spot; counts where all paths end alike and the standard error is 0. */
const ROUNDING = 1e-9

export interface Findings {
  responses: number
  /** Rows that never came, came more than once, came as a fault, or too far off, in words. */
  wrong: string[]
  worst: { row: number, standardErrors: number, money: number }
  instances: Set<string>
}

/** Reads responses to the end and compares each with Black and Scholes; user data is the row. `seen` hears how many there are so far. */
export async function checkBook (responses: AsyncIterable<Pick<Response<IOptionPricer>, 'userData' | 'fault' | 'result'>>, book: readonly Row[], seen: (responses: number) => void = () => {}): Promise<Findings> {
  const times = new Uint32Array(book.length)
  const found: Findings = { responses: 0, wrong: [], worst: { row: -1, standardErrors: 0, money: 0 }, instances: new Set() }
  for await (const response of responses) {
    seen(++found.responses)
    const row = Number(response.userData)
    const option = book[row]
    if (!option) { found.wrong.push(`a response to row ${response.userData}, which was not sent`); continue }
    times[row] = (times[row] ?? 0) + 1
    if (response.fault) { found.wrong.push(`row ${row}: ${response.fault.message}`); continue }
    const quote = response.result().PriceResult
    if (!quote) { found.wrong.push(`row ${row}: no price`); continue }
    if (quote.instance !== null) found.instances.add(quote.instance)
    const expected = blackScholes(option)
    const money = Math.abs(quote.price - expected)
    const standardErrors = money / (quote.standardError + ROUNDING * option.spot)
    // Turned round, so that what is no number is wrong too.
    if (!(standardErrors <= MOST_STANDARD_ERRORS)) found.wrong.push(`row ${row}: ${quote.price} is ${standardErrors.toFixed(2)} standard errors from ${expected}`)
    if (standardErrors > found.worst.standardErrors) found.worst = { row, standardErrors, money }
  }
  times.forEach((n, row) => { if (n !== 1) found.wrong.push(`row ${row} came ${n} times`) })
  return found
}
