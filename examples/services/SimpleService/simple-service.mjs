// The smallest service there is: a random whole number from 0 to max - 1.
import { randomInt } from 'node:crypto'

export default {
  Generate ({ max = 0 }) {
    if (max < 1) throw new Error(`max must be 1 or more, it is ${max}`)
    return { GenerateResult: randomInt(max) }
  }
}
