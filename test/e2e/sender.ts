import { openSession, sendAll } from './five-thousand.ts'

/** A client process of its own: sends everything, says EndRequests, prints the session, and stays until it is killed. */
const { session, client } = await openSession(process.argv[2] ?? '')
await sendAll(client)
const count = await client.endRequests()
process.stdout.write(`${JSON.stringify({ sessionId: session.id, count })}\n`)
setInterval(() => {}, 60_000)
