#!/usr/bin/env node
// `npm start`: from a bare clone to a broker that prices a book of options, and stays up for the next client. Only node: builtins.
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { build, needNode, root } from './build.mjs'
import { haveRedis, onPath } from './machine.mjs'

const HELP = `npm start -- [options]

Installs, builds, starts Redis, a head, a node and the sample services, prices a book of 2,000 options in a durable session, and stays up until Ctrl-C.

  --exit            end after the sample; exit code 0 only if every response was right
  --http HOST:PORT  where the broker listens (default 127.0.0.1:8080; port 0 picks a free one)
  --net-tcp HOST:PORT, --session-launcher-port PORT, --broker-launcher-port PORT
                    the same for net.tcp (default 127.0.0.1:9091, 9090, 9087; --net-tcp off serves none; a launcher's port 0: only the first)
  --data-dir DIR    what it keeps (default data/ in the clone)
  --cores N         slots of the node (default: what the machine has, at least 4)
  --redis URL       a Redis of yours instead of one of its own
  --rows N          price only the first N options
  --json            the sample's result as one JSON document on stdout
`

const OF_BROKER = ['http', 'net-tcp', 'session-launcher-port', 'broker-launcher-port', 'data-dir', 'cores', 'redis']

const { exit, help, wrong, ofBroker, ofSample } = takeApart(process.argv.slice(2))
if (help) {
  process.stdout.write(HELP)
  process.exit(0)
}
if (wrong !== undefined) {
  console.error(`npm start: ${wrong} (npm start -- --help shows what there is)`)
  process.exit(2)
}
needNode()
if (!ofBroker.some(arg => arg.startsWith('--redis')) && !process.env.SOA_REDIS && !haveRedis()) {
  console.error('redis-server is missing; install it with: sudo apt-get install redis-server')
  process.exit(3)
}
build()

const broker = startBroker()
const told = onSignals(() => broker.kill('SIGTERM'))
const ready = await firstLine(broker)
if (ready === undefined) process.exit(await ended(broker) || 1) // it has said why
const { http } = JSON.parse(ready)

const sample = spawn(process.execPath, ['--enable-source-maps', join(root, 'dist/examples/options/price-book.js'), ...ofSample, ...(exit ? ['--no-hint'] : [])], {
  cwd: root, stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, SOA_HEAD: http }
})
const brokerEnded = ended(broker)
const sampleCode = await Promise.race([ended(sample), brokerEnded.then(() => 1)])

if (exit || told.already) {
  broker.kill('SIGTERM')
  const brokerCode = await brokerEnded
  process.exit(told.already ? 130 : sampleCode || brokerCode)
}
console.log(`
${sampleCode === 0 ? 'The sample is done. The broker stays up' : `The sample ended with exit code ${sampleCode}. The broker stays up`}; Ctrl-C ends it.

  SOAP      ${http}/{sessionId}/Http     (WSDL: add ?wsdl)
  REST      ${http}/api/v1/sessions     (OpenAPI: ${http}/api/v1/openapi.json)
  health    ${http}/readyz     metrics: ${http}/metrics

  npm run -s soa -- session create CcpEchoSvc --durable${http.endsWith(':8080') ? '' : ` --head ${http}`}
`)
process.exit(await brokerEnded)

/** `wrong`: what cannot be understood, said before anything is built or started. */
function takeApart (args) {
  const ofBroker = []
  const ofSample = []
  const mine = { exit: false, help: false, wrong: undefined }
  for (let i = 0; i < args.length; i++) {
    const [, name = '', given] = /^--([a-z-]+)(?:=(.*))?$/s.exec(args[i]) ?? []
    const takesValue = name === 'rows' || OF_BROKER.includes(name)
    const value = takesValue ? given ?? args[++i] : given
    if (takesValue && (value ?? '') === '') mine.wrong ??= `--${name} needs a value`
    else if (name === 'rows' && !/^0*[1-9]\d*$/.test(value)) mine.wrong ??= `--rows: a whole number above 0 is expected, not ${value}`
    else if (name === 'rows') ofSample.push('--rows', value)
    else if (takesValue) ofBroker.push(`--${name}`, value)
    else if (name === 'json' && value === undefined) ofSample.push('--json')
    else if ((name === 'exit' || name === 'help') && value === undefined) mine[name] = true
    else mine.wrong ??= `${args[i]} is not known here`
  }
  return { ...mine, ofBroker, ofSample }
}

/**
 * `soa up` in a process group of its own: Ctrl-C in a terminal goes to the whole group of npm, and `soa up` would take what npm passes on for a second one. With setpriv
 * it ends when this process is killed.
 */
function startBroker () {
  const has = name => ofBroker.includes(name)
  const args = [join(root, 'bin/soa.mjs'), 'up', '--services', join(root, 'examples/services'), ...ofBroker]
  if (!has('--data-dir') && !process.env.SOA_DATA_DIR) args.push('--data-dir', join(root, 'data'))
  if (!has('--cores') && !process.env.SOA_CORES) args.push('--cores', String(Math.max(4, availableParallelism()))) // several instances on a small machine too
  const setpriv = onPath('setpriv')
  const [command, ...rest] = [...(setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'TERM']), process.execPath, ...args]
  console.error('starting the broker …')
  return spawn(command, rest, { detached: true, stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, SOA_LOG_LEVEL: process.env.SOA_LOG_LEVEL ?? 'warn' } })
}

function onSignals (end) {
  const state = { already: false }
  let last = 0
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(name, () => {
      const isEcho = Date.now() - last < 500 // one Ctrl-C comes twice: from the terminal and from npm
      last = Date.now()
      if (isEcho) return
      if (!state.already) console.error('\nending the broker … (Ctrl-C again: at once)')
      state.already = true
      end()
    })
  }
  return state
}

function firstLine (child) {
  return new Promise(resolve => {
    const lines = createInterface({ input: child.stdout })
    lines.once('line', resolve)
    lines.once('close', () => resolve(undefined))
    child.once('error', error => { console.error(error.message); resolve(undefined) })
  })
}

function ended (child) {
  return new Promise(resolve => {
    if (child.exitCode !== null || child.signalCode !== null) resolve(child.exitCode ?? 1)
    child.once('exit', code => resolve(code ?? 1))
    child.once('error', () => resolve(1))
  })
}
