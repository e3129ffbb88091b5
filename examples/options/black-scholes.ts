/** A European option and the market that it is priced in. */
export interface Option {
  /** Price of the share now, and the price at which the option lets one buy (call) or sell (put). */
  readonly spot: number
  readonly strike: number
  /** Riskless interest, per year, compounded continuously: 0.05 is 5 %. */
  readonly rate: number
  /** Standard deviation of the share's logarithm over a year: 0.2 is 20 %. */
  readonly volatility: number
  /** Until the option may be used. */
  readonly years: number
  readonly type: 'call' | 'put'
}

/** What the option is worth by the closed formula of Black and Scholes (1973), without dividends; absolute error below 1e-12 of the spot. */
export function blackScholes ({ spot, strike, rate, volatility, years, type }: Option): number {
  const spread = volatility * Math.sqrt(years)
  const d1 = (Math.log(spot / strike) + (rate + volatility * volatility / 2) * years) / spread
  const discounted = strike * Math.exp(-rate * years)
  return type === 'call'
    ? spot * normal(d1) - discounted * normal(d1 - spread)
    : discounted * normal(spread - d1) - spot * normal(-d1)
}

/**
 * Share of the standard normal distribution below `x`. The series x + x³/3 + x⁵/(3·5) + … times the density (Marsaglia, "Evaluating the Normal
 * Distribution", 2004); all its terms have one sign, so nothing cancels, and it ends when a term no longer changes the sum.
 */
export function normal (x: number): number {
  if (x < -8.5) return 0
  if (x > 8.5) return 1
  let sum = x
  for (let term = x, n = 3, before = 0; sum !== before; n += 2) {
    before = sum
    term *= x * x / n
    sum += term
  }
  return 0.5 + sum * Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI)
}
