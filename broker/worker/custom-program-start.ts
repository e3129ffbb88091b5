import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { setMaxListeners } from 'node:events'
import { sleep, within, type Clock } from '../../core/clock.ts'
import { isSoaError, SoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { ServiceRegistration } from '../../config/service-registration.ts'
import type { Settings } from '../../config/settings.ts'
import { accepting, freePort } from '../../transport/free-port.ts'
import { LinkError, ProgramLink } from './custom-program-link.ts'
import { ProgramProcess, type ProgramCommand } from './custom-program-process.ts'
import { lastWords } from './host-failure.ts'
import { description, type Description } from './custom-program-wire.ts'
import { Rubbish } from './custom-verdict.ts'

/** What a program is told of its session: JSON in SOA_SESSION, and again in onSessionStart. */
export interface ProgramSession {
  readonly id: string
  readonly service: string
  readonly isDurable: boolean
  readonly settings: Settings
}

export interface ProgramNeeds {
  readonly registration: ServiceRegistration
  readonly session: ProgramSession
  /** Of this process. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly log: Logger
}

/** A program that has said what it is. */
export interface Run { readonly process: ProgramProcess, readonly link: ProgramLink, readonly description: Description }

const HOST = '127.0.0.1'
/** The head waits a minute for a session to open; HPC Pack's launcher waited 5 minutes. */
const LONGEST_START_MS = 45_000
const NOT_READY_MS = 50
/** Between the end of a connection and the end of the process that had it. */
const END_SEEN_MS = 2000
const LAST_LINES = 1500

/** `run.sh -v`, for people. */
export function programText ({ customBroker }: ServiceRegistration): string {
  return [customBroker?.executive ?? '', ...customBroker?.arguments ?? []].join(' ').slice(0, 200)
}

/** Starts it and waits until it is ready. Refuses with Broker_CustomBrokerReadyTimeout, …ExitBeforeReady, or Broker_InvalidConfiguration: then it says something else than a custom broker. */
export async function startProgram (needs: ProgramNeeds, signal: AbortSignal): Promise<Run> {
  const { registration, session: { settings }, clock, log } = needs
  const program = programText(registration)
  const readyMs = Math.min(settings.hookTimeoutMs, LONGEST_START_MS)
  const port = await freePort(HOST)
  const process = new ProgramProcess(commandOf(needs, port), { clock, log })
  const gone = process.ended.then(({ how }) => { throw new SoaError('Broker_CustomBrokerExitBeforeReady', { program, why: `${how}${lastLines(process)}` }) })
  gone.catch(() => {}) // it ends some time
  const over = new AbortController()
  const maxAnswerBytes = answerLimit(settings)
  const probe = new ProgramLink({ port, connections: 1, maxAnswerBytes, clock })
  try {
    const ends = AbortSignal.any([signal, over.signal])
    setMaxListeners(0, ends)
    const said = introduction(probe, port, readyMs, clock, ends).catch(async error => {
      if (error instanceof LinkError && error.kind === 'lost' && await endsSoon(process, clock)) return await gone
      if (!(error instanceof LinkError) && !(error instanceof Rubbish)) throw error
      throw new SoaError('Broker_InvalidConfiguration', { setting: 'customBroker/@executive', why: `${program}: GET / ${error instanceof Rubbish ? 'gave back what is no description: ' : ''}${error.message}${lastLines(process)}` }, { cause: error })
    })
    const described = await within(clock, readyMs, Promise.race([said, gone]), () => new SoaError('Broker_CustomBrokerReadyTimeout', { program, timeoutMs: readyMs }))
    await probe.close()
    return { process, description: described, link: new ProgramLink({ port, connections: described.concurrency, maxAnswerBytes, clock }) }
  } catch (error) {
    over.abort(error)
    await probe.close()
    await process.stop(0)
    throw error
  }
}

export const isEarlyExit = (error: unknown): boolean => isSoaError(error, 'Broker_CustomBrokerExitBeforeReady')

async function introduction (link: ProgramLink, port: number, timeoutMs: number, clock: Clock, signal: AbortSignal): Promise<Description> {
  await accepting(HOST, port, clock, signal)
  for (;;) {
    try {
      return description(await link.call('GET', '/', null, timeoutMs))
    } catch (error) {
      if (!(error instanceof LinkError) || error.kind !== 'notReady') throw error
      await sleep(clock, NOT_READY_MS, signal)
    }
  }
}

/** True: it has ended, or does within a moment. */
export const endsSoon = (process: ProgramProcess, clock: Clock): Promise<boolean> =>
  within(clock, END_SEEN_MS, process.ended.then(() => true), () => new Error('it lives')).catch(() => false)

/** For the end of a sentence. */
export function lastLines (process: ProgramProcess): string {
  return lastWords(process.lastLines, 'its last lines: ', LAST_LINES)
}

/** A verdict of many parts (4 × maxMessageSize), in JSON's letters, and all of the state. */
const answerLimit = ({ maxMessageSize, maxStateBytes }: Settings): number => Math.min(8 * maxMessageSize + 2 * maxStateBytes + 65_536, 2 ** 28)

/**
 * HPC Pack's launcher gave it all of its own environment, and the file's variables over that. So here, without this house's own settings: among them are the address of
 * Redis and its password, and a custom broker never holds the store.
 */
function commandOf ({ registration: { customBroker, file, name }, session, env }: ProgramNeeds, port: number): ProgramCommand {
  const { executive = '', arguments: args = [], environmentVariables = {} } = customBroker ?? {}
  if (executive.includes('/') && !existsSync(executive)) throw new SoaError('Broker_InvalidConfiguration', { setting: 'customBroker/@executive', why: `${executive} is not on this machine` })
  const own = Object.entries(env).flatMap(([name, value]) => value === undefined || name.startsWith('SOA_') ? [] : [[name, value] as const])
  const folder = dirname(file)
  return {
    command: executive,
    args,
    env: { ...Object.fromEntries(own), ...environmentVariables, CCP_JOBID: session.id, CCP_SERVICENAME: name, SOA_LISTEN_URL: `http://${HOST}:${port}/`, SOA_SESSION: JSON.stringify(session) },
    cwd: existsSync(folder) ? folder : '/',
  }
}
