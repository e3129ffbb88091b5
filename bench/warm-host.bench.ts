/**
 * From "start this task" to "its port accepts": a process started cold, and a warm one that is told what to be, in turns. `node dist/bench/warm-host.bench.js [rounds]`;
 * milliseconds, and the memory that a warm host waits in. The processes, the ports and the waiting are the node manager's own.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadServiceFile } from '../config/load-services.ts'
import { parseRegistration } from '../config/service-registration.ts'
import { asset } from '../core/assets.ts'
import { systemClock as clock } from '../core/clock.ts'
import { silent as log } from '../core/log.ts'
import { Guardian } from '../node-manager/guardian.ts'
import { HostProcess } from '../node-manager/host-process.ts'
import { Ports } from '../node-manager/port.ts'
import { OUR_HOST } from '../node-manager/recipe.ts'
import { accepting } from '../transport/free-port.ts'

const rounds = Number(process.argv[2] ?? 20)
const service = await loadServiceFile(asset('examples/services/OptionPricer/OptionPricer.config'))
const { service: registered } = parseRegistration(service.config, service.file)
const dir = mkdtempSync(join(tmpdir(), 'soa-warm-'))
const guardian = new Guardian({ clock, log })
guardian.start()
const ports = new Ports('127.0.0.1')
const needs = { guardian, clock, log }
const own = { PATH: process.env.PATH ?? '' }
const { signal } = new AbortController()

async function start (ready: HostProcess | undefined): Promise<number> {
  const port = await ports.take()
  const listenUrl = `http://127.0.0.1:${port}/7/1/_defaultEndpoint`
  const spec = join(dir, `${port}.json`)
  const begun = performance.now()
  writeFileSync(spec, JSON.stringify({
    sessionId: '7',
    taskId: '1',
    listenUrl,
    controllerUrl: `${listenUrl}/controller`,
    service: service.name,
    module: registered.assembly,
    contract: registered.contract,
    wsdlFile: service.wsdlFile,
    documents: service.documents,
    maxConcurrentCalls: 1,
    maxMessageSize: 4_194_304,
    maxHeaderBytes: 65_536,
    maxDepth: 128,
    includeExceptionDetailInFaults: false,
    cancelGraceMs: 15_000,
    finishesCalls: true,
    serviceHostIdleTimeout: 3_600_000,
    serviceHangTimeout: -1
  }))
  const host = { env: { ...own, SOA_HOST_SPEC: spec }, cwd: dir, stderrFile: '' }
  ready?.assign(host, log)
  const process = ready ?? new HostProcess({ ...host, command: globalThis.process.execPath, args: [OUR_HOST] }, needs)
  const ended = process.ended.then(({ stderr }) => { throw new Error(`the host ended: ${stderr}`) })
  ended.catch(() => { /* it is killed below */ })
  await Promise.race([accepting('127.0.0.1', port, clock, signal), ended])
  const took = performance.now() - begun
  process.kill()
  await process.ended
  ports.giveBack(port)
  return took
}

async function warmed (): Promise<HostProcess> {
  const host = new HostProcess({ command: process.execPath, args: [OUR_HOST, '--warm'], env: own, cwd: '/', stderrFile: '', isWarm: true }, needs)
  await host.warmed
  return host
}

const times: Record<'cold' | 'warm' | 'justStarted', number[]> = { cold: [], warm: [], justStarted: [] }
let rssBytes = 0
try {
  for (let n = 0; n < rounds; n++) {
    times.cold.push(await start(undefined))
    const ready = await warmed()
    rssBytes = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${ready.pid}/status`, 'latin1'))?.[1]) * 1024
    times.warm.push(await start(ready))
    // One that a task gets in the moment that it was started must not be slower than none.
    times.justStarted.push(await start(new HostProcess({ command: process.execPath, args: [OUR_HOST, '--warm'], env: own, cwd: '/', stderrFile: '', isWarm: true }, needs)))
  }
} finally {
  guardian.close()
  rmSync(dir, { recursive: true, force: true })
}
for (const [name, values] of Object.entries(times)) {
  values.sort((a, b) => a - b)
  const at = (share: number): number => Math.round(values[Math.floor((values.length - 1) * share)] ?? NaN)
  console.log(JSON.stringify({ case: name, rounds, medianMs: at(0.5), p90Ms: at(0.9), leastMs: at(0), ...name === 'warm' ? { rssMiB: Math.round(rssBytes / 1_048_576) } : {} }))
}
