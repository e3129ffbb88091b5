import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A head or node that only pretends. PRETEND_<ROLE>: `exit N` = ends at once, `deaf` = does not hear SIGTERM, `mute` = never says that it is ready. */
const role = process.argv[2] ?? ''
const how = process.env[`PRETEND_${role.toUpperCase()}`] ?? ''
const [host = '', port = ''] = (process.env.SOA_HTTP ?? '').split(':')

if (how.startsWith('exit ')) {
  process.stderr.write(`${role}: cannot\n`)
  process.exit(Number(how.slice(5)))
}
process.on('SIGTERM', () => {
  process.stderr.write(`${role}: SIGTERM\n`)
  if (how !== 'deaf') process.exit(0)
})
const server = createServer((request, response) => {
  process.stderr.write(`${role}: ${request.method} ${request.url}\n`)
  response.writeHead(200).end('{}')
})
server.listen(role === 'head' ? Number(port) : 0, host, () => {
  if (how !== 'mute') process.stdout.write(`${JSON.stringify({ ready: true, http: `http://${host}:${(server.address() as AddressInfo).port}`, netTcp: null })}\n`)
  process.stderr.write(`${role}: redis ${process.env.SOA_REDIS} idle ${process.env.SOA_SESSION_IDLE_TIMEOUT}\n`)
})
