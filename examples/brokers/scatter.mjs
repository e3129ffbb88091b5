// An Echo of `a,b,c` becomes three, which service instances answer side by side; the client gets one response, their results joined.
import { CustomBroker } from 'soa-broker/broker'

const INPUT = /(<(?:\w+:)?input[^>]*>)([^<]*)/
const RESULT = /(<(?:\w+:)?EchoResult[^>]*>)([^<]*)/

export default class Scatter extends CustomBroker {
  onRequest ({ body }) {
    const words = INPUT.exec(body)?.[2]?.split(',') ?? []
    return words.length < 2 ? 'pass' : { scatter: words.map(word => ({ body: body.replace(INPUT, (_, tag) => tag + word) })) }
  }

  onGather (_request, parts) {
    const failed = parts.find(({ isFault }) => isFault)
    if (failed !== undefined) return failed
    const all = parts.map(({ body }) => RESULT.exec(body)?.[2] ?? '').join(' ')
    return { body: parts[0].body.replace(RESULT, (_, tag) => tag + all) }
  }
}
