import { Session } from '../../client/index.ts'

/** A client that never says goodbye: opens an interactive session that ends some seconds after its last client, sends, prints the session, and stays until it is killed. */
const session = await Session.create({ service: 'CcpEchoSvc', head: process.argv[2] ?? '', maxUnits: 1, settings: { sessionIdleTimeout: 4000, clientIdleTimeout: 4000, clientConnectionTimeout: 20_000 } })
await session.client('gone').send('Echo', { input: 'x' }, { userData: '0' })
process.stdout.write(`${session.id}\n`)
setInterval(() => {}, 60_000)
