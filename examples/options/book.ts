import { readFileSync } from 'node:fs'
import { asset } from '../../core/assets.ts'
import type { Option } from './black-scholes.ts'

/** One line of the book. */
export interface Row extends Option {
  /** What the service's random numbers begin with: the same seed gives the same price. */
  readonly seed: number
}

const COLUMNS = ['spot', 'strike', 'rate', 'volatility', 'years', 'type', 'seed'] as const
const FILE = 'examples/options/options.csv'

/** The first `rows` options of the book, all by default. Throws when a line cannot be read, naming it. */
export function readBook (rows = Infinity): Row[] {
  const [header = '', ...lines] = readFileSync(asset(FILE), 'utf8').trimEnd().split(/\r?\n/)
  if (header !== COLUMNS.join(',')) throw new Error(`${FILE}: its first line is "${header}", not "${COLUMNS.join(',')}"`)
  return lines.slice(0, rows).map((line, i) => {
    const [spot, strike, rate, volatility, years, type, seed] = line.split(',')
    const row = { spot: Number(spot), strike: Number(strike), rate: Number(rate), volatility: Number(volatility), years: Number(years), type: type as Row['type'], seed: Number(seed) }
    if ((type !== 'call' && type !== 'put') || Object.values(row).some(Number.isNaN)) throw new Error(`${FILE}, line ${i + 2}: ${line}`)
    return row
  })
}
