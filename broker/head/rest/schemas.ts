import { SETTINGS, settingNames } from '../../../config/settings.ts'
import { NODE_STATES } from '../../../store/node.states.ts'

/** JSON Schemas of surface.md: what bodies are checked against, answers are written by, and `/api/v1/openapi.json` is printed from. */

type Schema = Record<string, unknown>
const text = (description: string, more: Schema = {}): Schema => ({ type: 'string', description, ...more })
const count = (description: string): Schema => ({ type: 'integer', minimum: 0, description })
const orNull = (schema: Schema): Schema => ({ ...schema, type: [schema.type as string, 'null'] })
const object = (properties: Record<string, Schema>, more: Schema = {}): Schema => ({ type: 'object', properties, ...more })
const list = (items: Schema): Schema => ({ type: 'array', items })
export const page = (item: Schema): Schema => object({ items: list(item), next: text('cursor of the following page; absent at the end') }, { required: ['items'] })
export const ref = (name: string): Schema => ({ $ref: `${name}#` })

/** What text in a query must look like, by pattern, in words (rest/invalid.ts). */
export const EXPECTED_BY_PATTERN: ReadonlyMap<string, string> = new Map([
  ['^0*(?:[1-9][0-9]{0,2}|1000)$', 'a whole number from 1 to 1000'],
  ['^[0-9]{1,9}$', 'a whole number from 0 to 999999999'],
  ['^[0-9]{1,15}$', '`next` of the page before']
])
const patternOf = (expected: string): string => {
  for (const [pattern, words] of EXPECTED_BY_PATTERN) if (words === expected) return pattern
  throw new Error(`no pattern is for ${expected}`)
}
/** How many of a list are wanted. */
export const limitOf1000 = (description: string): Schema => text(description, { pattern: patternOf('a whole number from 1 to 1000') })
export const NO_QUERY: Schema = object({}, { additionalProperties: false })

const STATES = ['Starting', 'Running', 'Suspended', 'Finished', 'Failed', 'Canceled']

const problem = object({
  title: text('the status in words'),
  status: { type: 'integer' },
  detail: text('what is wrong, for people; names setting, limit and value where there are any'),
  code: { type: 'integer', description: 'HPC Pack\'s number (SOAFaultCode), where it has one' },
  name: text('HPC Pack\'s name, or ours where it has none: what programs compare'),
  setting: text('the setting or field that refused'),
  limit: text('its limit'),
  value: text('the value that was seen')
}, { $id: 'Problem', required: ['title', 'status', 'detail'] })

const counters = object({
  total: count('requests taken; = processed + processing + queued'),
  processed: count('requests with a response'),
  processing: count('requests at a service instance'),
  faulted: count('responses that are faults'),
  queued: count('requests that wait for a service instance, and those that were purged without a response'),
  outstanding: count('requests without a response: total − processed − purgedTotal + purgedProcessed'),
  directlyReplied: count('answered in the same exchange, not stored; part of processed'),
  replyFetched: count('responses that readers have got, each once'),
  purgedTotal: count('requests of purged clients; part of total'),
  purgedProcessed: count('those of them that had a response'),
  purgedFaulted: count('those whose response was a fault'),
  reemitted: count('requests sent to one more instance since the first one took long (multiEmissionDelayTime)'),
  duplicates: count('responses that came when the request had one'),
  refused: count('requests that came too late and were not taken'),
  deadLettered: count('requests that were given up, ever'),
  replaying: count('dead letters that are being run again'),
  callDurationMs: { type: 'number', description: 'a call at a service instance without its wait there, on average' },
  callsPerSecond: { type: 'number', description: 'answers a second, over the last five seconds' }
}, { type: ['object', 'null'], description: 'null while nobody serves the session' })

const client = object({
  clientId: text(''),
  state: text('ClientConnected, EndRequests, AllRequestDone, GetResponse or Disconnected'),
  status: text('Ready, Processing, Finished or Unknown'),
  total: count('requests taken'),
  flushed: count('requests that Flush or EndRequests answered for'),
  processed: count('requests with a response'),
  faulted: count('responses that are faults'),
  endRequests: { type: 'boolean' }
}, { $id: 'Client' })

const letterFields: Record<string, Schema> = {
  id: text('a number that only grows within its session'),
  sessionId: text(''),
  clientId: text(''),
  seq: { type: 'integer', description: 'place of the request in its client\'s order' },
  messageId: text('of the request'),
  action: text('of the request'),
  userData: text('of the request, as text; cut when it is long'),
  state: text('Replaying: it was asked to run again and has not come to an end yet', { enum: ['Dead', 'Replaying'] }),
  at: text('when it was given up', { format: 'date-time' }),
  why: text('as its fault says'),
  tries: list(object({
    taskId: text('service instance'), node: text(''), at: text('', { format: 'date-time' }), outcome: text('a row of docs/states.md, "What a failed call means"'), why: text('')
  }, { description: 'executions that came to nothing, oldest first; the latest 20' }))
}
const letter = object(letterFields, { $id: 'DeadLetter' })
const wholeLetter = object({ ...letterFields, body: text('markup inside the SOAP Body of the request'), envelope: text('the whole request as SOAP 1.2') }, { $id: 'WholeDeadLetter' })

/** What nodes and units a session asks for. */
const wishes = {
  group: text('node group; several with commas between them: nodes that are in all of them'),
  labels: object({}, { additionalProperties: { type: 'string' }, description: 'labels that a node must have' }),
  exclude: { ...list(text('')), description: 'names of nodes that are not to be used' },
  coresPerUnit: { type: 'integer', description: 'cores of each service instance, 1 … 4096; default 1' },
  unitType: text('what a service instance gets: coresPerUnit cores, the slots of a socket, or a whole node; default core', { enum: ['core', 'socket', 'node'] }),
  canPreempt: { type: 'boolean', description: 'false: no other session takes its service instances; default true' }
}

/** `GET …/dead-letters`: a page, and what the session has in all. */
export const letterPage = object({ items: list(ref('DeadLetter')), next: text('cursor of the following page; absent at the end'), total: count('kept now'), dropped: count('the oldest, which went when there were more than maxDeadLetters') }, { required: ['items'] })

const task = object({
  id: text('never used twice'),
  node: text('node that it runs on'),
  pid: { type: ['integer', 'null'], description: 'of the service host' },
  state: text('Queued, Dispatching, Running, Canceling, Finishing, Finished, Failed or Canceled'),
  capacity: count('cores'),
  at: text('since when it is in this state', { format: 'date-time' }),
  exit: object({
    code: { type: ['integer', 'null'], description: 'exit status; null: it ended by a signal, or never was' },
    signal: { type: ['string', 'null'] },
    why: text('in words'),
    stderr: text('its last lines on stderr, 20 of them or 4 KiB')
  }, { description: 'how its service host ended' })
}, { $id: 'Task' })

const session = object({
  sessionId: text('a number below 2^31, as text'),
  service: text('as it is registered'),
  version: text('of the service'),
  durable: { type: 'boolean' },
  pooled: { type: 'boolean', description: 'one of its service\'s pool of sessions' },
  shared: { type: 'boolean', description: 'a client that lets go of it does not close it' },
  state: text('', { enum: STATES }),
  why: text('why it is no longer running'),
  createdAt: text('', { format: 'date-time' }),
  priority: count('0 … 4000, higher goes first'),
  minUnits: count('service instances, all of them or none'),
  maxUnits: count('service instances at most'),
  ...wishes,
  settings: object({}, { additionalProperties: true, description: 'what the session overrides' }),
  brokerPid: orNull({ type: 'integer', description: 'process that serves it; null while nobody does' }),
  brokerUniqueId: text('new for every incarnation of its broker'),
  endpoints: object({ http: text('where SOAP requests go', { format: 'uri' }), netTcp: orNull(text('null while there is none')) }),
  counters,
  clients: list(ref('Client')),
  tasks: list(ref('Task')),
  bytes: orNull(count('kept in the store')),
  lastFailure: object({ taskId: text(''), node: text(''), at: text('', { format: 'date-time' }), why: text(''), stderr: text('its last lines') }, { description: 'the latest service host that ended before it took a call' }),
  waitsFor: object({
    units: count('service instances that it must have, all or none'),
    has: count('that it has'),
    nodes: count('nodes that may be used'),
    room: count('units that fit on them with nothing else there'),
    free: count('units that fit on them now'),
    cores: count('slots of these nodes'),
    busyCores: count('slots in use'),
    freeingCores: count('those of them that are being freed'),
    unusable: list(object({ node: text(''), why: text('') })),
    why: text('all of it in words')
  }, { description: 'of one session: why the grid does not give it what it cannot work without; absent: it has that, or gets it at once' })
}, { $id: 'Session' })

const node = object({
  id: text('name of the node, kept across restarts'),
  machine: text(''),
  pid: count('of the node manager'),
  state: text(Object.entries(NODE_STATES).map(([state, { says }]) => `${state}: ${says}`).join(' · '), { enum: Object.keys(NODE_STATES) }),
  cores: count('slots'),
  busy: count('slots in use'),
  tasks: count('tasks there'),
  heartbeatAgeMs: count('since it was heard last; Offline: since it was declared dead'),
  groups: list(text('')),
  labels: object({}, { additionalProperties: { type: 'string' } }),
  sockets: count('of the machine'),
  startedAt: text('of the node manager', { format: 'date-time' }),
  releaseFailure: object({ sessionId: text(''), at: text('', { format: 'date-time' }), why: text(''), stderr: text('its last lines') }, { description: 'the latest releaseNodeCommandLine that failed there' })
}, { $id: 'Node' })

const head = object({
  id: text('new with each start'),
  machine: text('whose workers it reaches by itself'),
  pid: count('of the head'),
  state: text('Online: takes new sessions · Draining: takes none, those that run go on · Drained: and none is left', { enum: ['Online', 'Draining', 'Drained'] }),
  sessions: count('served by its workers'),
  http: text('where it listens', { format: 'uri' }),
  netTcp: text('the same for net.tcp; absent: not served'),
  peer: text('HOST:PORT where heads of other machines reach its workers'),
  startedAt: text('', { format: 'date-time' })
}, { $id: 'Head' })

/** `POST heads/{id}/drain` */
export const drainBody = { ...object({ force: { type: 'boolean', description: 'also suspend what runs: durable sessions are raised by another head, interactive ones end' } }, { additionalProperties: false }), type: ['object', 'null'] }

const service = object({
  name: text(''),
  version: text(''),
  file: text('where the registration file lies; paths in it are relative to this'),
  wsdlFile: text(''),
  addedAt: text('', { format: 'date-time' }),
  config: text('the registration file (HPC Pack\'s XML)'),
  documents: object({}, { additionalProperties: { type: 'string' }, description: 'WSDL and schemas by absolute path' }),
  warnings: list(text(''))
}, { $id: 'Service' })

const setting = object({
  name: text(''),
  scope: text('', { enum: ['process', 'session'] }),
  unit: text(''),
  value: { type: ['number', 'string', 'boolean'], description: 'what this head runs with' },
  default: { type: ['number', 'string', 'boolean'] },
  min: { type: 'integer' },
  max: { type: 'integer' },
  oneOf: list(text('')),
  environment: text('variable that sets it'),
  says: text('what it means')
}, { $id: 'Setting' })

export const SHARED: Schema[] = [problem, client, letter, wholeLetter, task, session, node, head, service, setting]

const sessionSettings = object(Object.fromEntries(settingNames('session').map(name => [name, {
  type: typeof SETTINGS[name].default === 'string' ? 'string' : [typeof SETTINGS[name].default, 'string'], // numbers may come as text: `--set name=value` has no types
  description: `${SETTINGS[name].says}; ${SETTINGS[name].unit}, default ${String(SETTINGS[name].default)}`
}])), { additionalProperties: { type: ['number', 'string', 'boolean'] }, description: 'a name that is none of these is refused' })

/** `POST sessions`. Ranges are checked behind, by the same code that checks every other way in; here only what is there and its type. */
export const sessionRequest = object({
  service: text('a registered service'),
  version: text('absent: the unversioned one, else the highest'),
  durable: { type: 'boolean', description: 'default false: interactive' },
  pool: { type: 'boolean', description: 'one of the service\'s pool: an existing one (answered 200) when there are maxSessionPoolSize of them' },
  shared: { type: 'boolean', description: 'a client that lets go of it does not close it; every one of a pool is' },
  minUnits: { type: 'integer', description: 'service instances, all of them or none; default 1' },
  maxUnits: { type: 'integer', description: 'service instances at most; default: all slots' },
  priority: { type: 'integer', description: '0 … 4000, higher goes first; default 2000' },
  ...wishes,
  settings: sessionSettings
}, { required: ['service'], additionalProperties: false })

export const sessionQuery = object({
  state: text('only sessions in this state', { enum: STATES }),
  service: text('only sessions of this service'),
  cursor: text('`next` of the page before'),
  limit: limitOf1000('1 … 1000 sessions a page, default 100')
}, { additionalProperties: false })

export const responsesQuery = object({
  from: text('begin: all again · current: from where this client stopped', { enum: ['begin', 'current'] }),
  limit: text('responses at most', { pattern: '^[0-9]{1,9}$' })
}, { additionalProperties: false })

export const lettersQuery = object({
  client: text('of this client only; empty: the client without an id'),
  cursor: text('`next` of the page before', { pattern: '^[0-9]{1,15}$' }),
  limit: limitOf1000('1 … 1000 a page, default 100')
}, { additionalProperties: false })

/** One line of `POST …/requests` (broker/worker/messages.ts reads it). */
export const requestLine = object({
  action: text('SOAP action of the operation, as the WSDL has it'),
  body: text('markup inside the SOAP Body: one element'),
  userData: { description: 'comes back with the response: text as it is, anything else as JSON text' },
  messageId: text('comes back with the response; default: a new urn:uuid')
}, { required: ['action', 'body'], description: 'one such JSON object a line, each line ended by a line feed' })

/** `PUT services/{name}`: what config/load-services.ts reads from disk. */
export const serviceBody = object({
  name: text('as in the path'),
  version: text('as in the name of the file'),
  config: text('the registration file (HPC Pack\'s XML)'),
  file: text('absolute path of the registration file: `assembly` in it is relative to it'),
  wsdlFile: text('absolute path of the main WSDL'),
  documents: object({}, { additionalProperties: { type: 'string' }, description: 'text of the WSDL and of every schema it imports, by absolute path' }),
  addedAt: text('')
}, { required: ['config', 'file'], additionalProperties: false })

/** Answers of a route: the good ones as given, every other one a problem. */
export const answers = (good: Record<string, Schema>): Schema => ({ ...good, default: { description: 'refused', content: { 'application/problem+json': { schema: ref('Problem') } } } })
export const json = (description: string, schema: Schema): Schema => ({ description, content: { 'application/json': { schema } } })
