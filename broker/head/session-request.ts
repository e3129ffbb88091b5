import { sessionSettings } from '../../config/read-settings.ts'
import { parseRegistration } from '../../config/service-registration.ts'
import type { Settings } from '../../config/settings.ts'
import { SoaError } from '../../core/errors.ts'
import type { RegisteredService, ServiceRegistry } from '../../store/service-registry.ts'
import type { SessionRecord } from '../../store/session-store.ts'
import type { NodeView } from '../../store/redis-placement.ts'
import { readWishes, refuseUnlessPossible, wishesForNodes, type AskedWishes } from './session-wishes.ts'

/** What a caller asks for: `POST /api/v1/sessions` (surface.md). */
export interface SessionRequest extends AskedWishes {
  service: string
  version?: string | undefined
  durable?: boolean | undefined
  /** One of the service's pool of sessions: an existing one when there are maxSessionPoolSize of them. Shared, therefore. */
  pool?: boolean | undefined
  /** Others use it too: letting go of it closes it for nobody. */
  shared?: boolean | undefined
  minUnits?: number | undefined
  maxUnits?: number | undefined
  priority?: number | undefined
  settings?: Readonly<Record<string, number | string | boolean>> | undefined
  /** For the service hosts (SOAP: Environments). */
  environment?: Readonly<Record<string, string>> | undefined
}

/** HPC's ExtendedPriority ([broker-behaviour] 1.8). */
const PRIORITY = { lowest: 0, highest: 4000, normal: 2000 }
/** A bound on arithmetic, not on hope: no grid that Redis can describe has more tasks. */
const MOST_UNITS = 1_000_000
/** Names and values together. The system takes 128 KiB for one variable at most, and every service host of the session gets a copy. */
const MAX_ENVIRONMENT_BYTES = 65_536

/** The request checked against the service's registration and every limit, as the record of a session that is about to start; only its id is missing. */
export async function sessionRecord (request: SessionRequest, services: ServiceRegistry, defaults: Settings, now: number, nodes: () => Promise<readonly NodeView[]>): Promise<Omit<SessionRecord, 'sessionId'>> {
  const { minUnits, maxUnits, settings = {}, environment = {} } = request
  // HPC Pack's rule for names ([broker-behaviour] 1.8); checked here, so that a path or a key can never be made of one.
  if (!/^[\w\-.]{1,255}$/.test(request.service)) throw new SoaError('InvalidArgument', { argument: 'service', why: '1 to 255 letters, digits, _ - and .' })
  const priority = wholeNumber('priority', request.priority ?? PRIORITY.normal, PRIORITY.lowest, PRIORITY.highest)
  if (minUnits !== undefined) wholeNumber('minUnits', minUnits, 1, MOST_UNITS)
  // 0 is how some APIs say "no limit"; here it would be a session that never computes, so it is refused rather than guessed at.
  if (maxUnits !== undefined) wholeNumber('maxUnits', maxUnits, 1, MOST_UNITS)
  if ((minUnits ?? 1) > (maxUnits ?? MOST_UNITS)) throw new SoaError('InvalidArgument', { argument: 'minUnits', why: `${minUnits} is more than maxUnits, ${maxUnits}` })
  checkEnvironment(environment)
  const wishes = readWishes(request)
  const service = await services.get(request.service, request.version)
  if (wishesForNodes(wishes)) refuseUnlessPossible(wishes, await nodes())
  const registration = parseRegistration(service.config, service.file)
  sessionSettings(defaults, registration.broker, settings) // throws what does not fit, layer by layer, as the worker would
  return {
    service: service.name,
    version: service.version,
    durable: request.durable ?? false,
    ...(request.pool === true ? { poolSize: registration.service.maxSessionPoolSize } : {}),
    ...(request.pool === true || request.shared === true ? { isShared: true } : {}),
    minUnits,
    maxUnits,
    priority,
    settings,
    environment,
    ...wishes,
    ...(registration.customBroker === undefined ? {} : { isAlone: true }),
    state: 'Starting',
    createdAt: new Date(now).toISOString()
  }
}

/** What a session of the service runs with. */
export const settingsFor = (service: RegisteredService, settings: SessionRecord['settings'], defaults: Settings): Settings =>
  sessionSettings(defaults, parseRegistration(service.config, service.file).broker, settings)

function checkEnvironment (environment: Readonly<Record<string, string>>): void {
  let bytes = 0
  for (const [name, value] of Object.entries(environment)) {
    if (!/^[^=\0]{1,1024}$/.test(name) || value.includes('\0')) throw new SoaError('InvalidArgument', { argument: 'environment', why: `${JSON.stringify(name.slice(0, 100))} and its value: a name without =, at most 1024 characters, and no zero character` })
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value) + 2
  }
  if (bytes > MAX_ENVIRONMENT_BYTES) throw new SoaError('InvalidArgument', { argument: 'environment', why: `it has ${bytes} bytes, the limit is ${MAX_ENVIRONMENT_BYTES}` })
}

function wholeNumber (argument: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw new SoaError('InvalidArgument', { argument, why: `a whole number from ${least} to ${most}, not ${value}` })
}
