/** A service host without a process of its own: real HTTP, the test's own objects as the service. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { systemClock } from '../../core/clock.ts'
import { silent } from '../../core/log.ts'
import { describe } from '../../service-host/description.ts'
import { ServiceHost } from '../../service-host/host.ts'
import { Invoker } from '../../service-host/invoker.ts'
import { loadService } from '../../service-host/service-loader.ts'
import { listenHttp } from '../../transport/http/listener.ts'
import { loadWsdl, operationsOf } from '../../wsdl/document.ts'
import { documents } from '../wsdl/cases.ts'
import { Caller } from './caller.ts'

/** For code of modules: what `soa-broker/service` is, of the same build as this test. */
export const serviceModule = new URL('../../service-host/index.js', import.meta.url).href

/** A module file with this code; `SERVICE` in it stands for the URL of `soa-broker/service`. */
export function moduleFile (t: Pick<Test, 'teardown'>, code: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'soa-service-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const file = join(dir, 'service.mjs')
  writeFileSync(file, code.replaceAll('SERVICE', JSON.stringify(serviceModule)))
  return file
}

export interface Served extends Caller { readonly host: ServiceHost, readonly lines: ReadonlyArray<readonly [string, Record<string, unknown>]> }

export async function serve (t: Pick<Test, 'teardown'>, code: string, options: { wsdl?: string, form?: string, files?: { readonly documents: Readonly<Record<string, string>>, readonly main: string }, module?: string, calls?: number, waiting?: number, details?: boolean, maxMessageSize?: number, lenient?: boolean, type?: string } = {}): Promise<Served> {
  const { wsdl: name = 'calc', form = 'flat', calls = 16, waiting = 1000, details = false, maxMessageSize = 1_048_576, lenient = false } = options
  const { documents: files, main } = options.files ?? { documents: Object.fromEntries(documents(name)), main: `${form}.wsdl` }
  const wsdl = loadWsdl(files, main)
  const operations = operationsOf(wsdl, '')
  const lines: Array<readonly [string, Record<string, unknown>]> = []
  const line = (fields: unknown, message?: string): void => { lines.push([message ?? String(fields), fields as Record<string, unknown>]) }
  const log = { trace: line, debug: line, info: line, warn: line, error: line, fatal: line }
  const methods = await loadService(options.module ?? moduleFile(t, code), wsdl, operations, options.type)
  const host = new ServiceHost({
    invoker: new Invoker({ schema: wsdl.schema, operations, methods, taskId: '1.3', maxDepth: 128, maxMessageSize, includeExceptionDetailInFaults: details, isLenient: lenient, log }),
    sessionId: '7',
    taskId: '1.3',
    maxConcurrentCalls: calls,
    maxWaitingCalls: waiting,
    limits: { maxMessageSize: 1_048_576, maxHeaderBytes: 65536, maxDepth: 128 },
    cancelGraceMs: 10_000,
    finishesCalls: true,
    idleMs: -1,
    hangMs: -1,
    idle () {},
    hung () {},
    log,
    clock: systemClock,
    get: describe({ documents: files, wsdlFile: main, service: 'Test', taskId: '1.3' })
  })
  const { endpoint } = host
  const listener = await listenHttp({ route: path => path === '/7/1/_defaultEndpoint' ? endpoint : undefined, listen: { host: '127.0.0.1', port: 0 }, log: silent })
  t.teardown(() => listener.close())
  return Object.assign(new Caller(`${listener.address}/7/1/_defaultEndpoint`), { host, lines })
}
