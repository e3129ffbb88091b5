// European options by Monte Carlo: the price today is the mean payoff at the end, discounted. The same seed gives the same paths, on any instance.

/** Enough for an error of about 0.5 % of the price; one call then takes 1 to 3 ms. */
const DEFAULT_PATHS = 50_000
const MOST_PATHS = 50_000_000
/** A long call looks after others (and its own cancelling) each time it has walked so many paths. */
const BATCH = 1_000_000

/** xoshiro128++ (Blackman and Vigna, 2019), its state filled from the seed by splitmix32. Uniform in (0, 1). */
function uniforms (seed) {
  const state = new Uint32Array(4)
  let s = seed | 0
  for (let i = 0; i < 4; i++) {
    s = (s + 0x9e3779b9) | 0
    let z = s ^ (s >>> 16)
    z = Math.imul(z, 0x21f0aaad)
    z ^= z >>> 15
    z = Math.imul(z, 0x735a2d97)
    state[i] = z ^ (z >>> 15)
  }
  let [a, b, c, d] = state
  return () => {
    const sum = (a + d) | 0
    const result = (((sum << 7) | (sum >>> 25)) + a) >>> 0
    const t = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d = (d << 11) | (d >>> 21)
    return (result + 0.5) / 4294967296
  }
}

/** Two normal variates at a time (Marsaglia's polar method), and each also with its sign turned: the mean of such a pair varies less. */
async function monteCarlo ({ spot, strike, rate, volatility, years, isCall, paths, seed }, signal) {
  const uniform = uniforms(seed)
  const forward = spot * Math.exp((rate - volatility * volatility / 2) * years)
  const spread = volatility * Math.sqrt(years)
  const sign = isCall ? 1 : -1
  const payoff = z => Math.max(sign * (forward * Math.exp(spread * z) - strike), 0)
  const pairs = Math.ceil(paths / 2)
  let sum = 0
  let squares = 0
  for (let done = 0; done < pairs;) {
    let x, y, r
    do {
      x = 2 * uniform() - 1
      y = 2 * uniform() - 1
      r = x * x + y * y
    } while (r >= 1)
    const scale = Math.sqrt(-2 * Math.log(r) / r)
    const first = (payoff(x * scale) + payoff(-x * scale)) / 2
    sum += first
    squares += first * first
    if (++done < pairs) {
      const second = (payoff(y * scale) + payoff(-y * scale)) / 2
      sum += second
      squares += second * second
      done++
    }
    if (done % BATCH < 2) {
      await new Promise(resolve => setImmediate(resolve))
      signal.throwIfAborted()
    }
  }
  const mean = sum / pairs
  const discount = Math.exp(-rate * years)
  return { price: discount * mean, standardError: discount * Math.sqrt(Math.max(squares / pairs - mean * mean, 0) / Math.max(pairs - 1, 1)) }
}

/** A fault that the WSDL declares: clients get it with its type. */
function refuse (field, value, why) {
  throw Object.assign(new Error(`${field} is ${value}, it must be ${why}`), { fault: 'InvalidOptionFault', code: 'Sender', detail: { field, value } })
}

export default class OptionPricer {
  async Price (option, { signal, taskId }) {
    const { paths = DEFAULT_PATHS } = option
    for (const field of ['spot', 'strike', 'years']) if (!(option[field] > 0 && Number.isFinite(option[field]))) refuse(field, option[field], 'a number above 0')
    if (!(option.volatility >= 0 && option.volatility <= 10)) refuse('volatility', option.volatility, 'from 0 to 10 (1000 %)')
    if (!(Math.abs(option.rate) <= 10)) refuse('rate', option.rate, 'from -10 to 10')
    if (!(paths >= 2 && paths <= MOST_PATHS)) refuse('paths', paths, `from 2 to ${MOST_PATHS}`)
    const { price, standardError } = await monteCarlo({ ...option, paths }, signal)
    return { PriceResult: { instance: `${taskId}:${process.pid}`, price, standardError, taskId } }
  }
}
