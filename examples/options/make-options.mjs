// Writes options.csv: a book of 2,000 European options, the same one every time. Run: node examples/options/make-options.mjs
import { writeFileSync } from 'node:fs'

const ROWS = 2000

/** mulberry32: the book is the same on every machine because nothing here asks the machine for chance. */
let state = 20_081_103
function uniform () {
  state = (state + 0x6d2b79f5) | 0
  let t = Math.imul(state ^ (state >>> 15), state | 1)
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}
const between = (from, to, digits) => (from + (to - from) * uniform()).toFixed(digits)

const lines = ['spot,strike,rate,volatility,years,type,seed']
for (let row = 1; row <= ROWS; row++) {
  const spot = between(20, 200, 2)
  // Not too far from the money: an option that hardly ever pays has no error that means anything.
  const strike = (spot * between(0.8, 1.2, 4)).toFixed(2)
  lines.push([spot, strike, between(0, 0.06, 4), between(0.15, 0.6, 3), between(0.25, 2, 2), uniform() < 0.5 ? 'call' : 'put', row].join(','))
}
writeFileSync(new URL('options.csv', import.meta.url), `${lines.join('\n')}\n`)
