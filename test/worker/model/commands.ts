import fc from 'fast-check'
import { isSoaError, SoaError, type FaultName } from '../../../core/errors.ts'
import { toFault } from '../../../wire/soap/fault.ts'
import type { BrokerClient } from '../../../broker/worker/broker-client.ts'
import type { Position } from '../../../broker/worker/response-reader.ts'
import { settle } from '../../clock.ts'
import { reading } from '../open-session.ts'
import type { FlushCall } from './reference.ts'
import type { Rig, Call } from './rig.ts'
import { MOVES, type Move, type Trouble } from './troubled-store.ts'

/** Clients of a run. The last one sends as HPC's does over net.tcp: on a channel, hearing nothing of each request. */
const NAMES = ['a', 'B', 'c'] as const
const BLIND = 2
const ANSWERS = ['reply', 'fault', 'retry', 'broken', 'timedOut', 'badReply', 'preempted', 'unreachable'] as const
const TASK_NEWS = ['Running', 'Canceling', 'Canceled', 'Failed', 'lost', 'Finished'] as const

const SOAP12 = 'http://www.w3.org/2003/05/soap-envelope'
const RETRY = '<RetryOperationError xmlns="http://hpc.microsoft.com/session/"><lastFailedServiceId>0</lastFailedServiceId><reason>no</reason><retryCount>0</retryCount></RetryOperationError>'

/** What happens in a run, as data: any list of these makes sense in any state. */
export type Command = { readonly turns: number } & (
  | { readonly do: 'send', readonly who: number, readonly what: 'new' | 'again' | 'nextBatch', readonly which: number }
  | { readonly do: 'flush' | 'end', readonly who: number, readonly off: number }
  | { readonly do: 'get', readonly who: number, readonly position: Position, readonly count: number, readonly action: string }
  | { readonly do: 'purge' | 'leave', readonly who: number }
  | { readonly do: 'crash' | 'start' }
  | { readonly do: 'task', readonly news: (typeof TASK_NEWS)[number], readonly which: number }
  | { readonly do: 'answer', readonly how: (typeof ANSWERS)[number], readonly which: number }
  // all instances that have the same message, in one turn
  | { readonly do: 'answers', readonly which: number }
  | { readonly do: 'trouble', readonly move: Move, readonly how: Trouble }
  | { readonly do: 'time', readonly ms: number })

/** Turns of the event loop before the next command: 12 let everything come to rest. */
const turns = fc.constantFrom(0, 1, 2, 3, 5, 12)
const who = fc.integer({ min: 0, max: NAMES.length - 1 })
const which = fc.nat(5)

export const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 9, arbitrary: fc.record({ do: fc.constant('send' as const), who, what: fc.constantFrom('new' as const, 'new' as const, 'new' as const, 'again' as const, 'nextBatch' as const), which, turns }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('flush' as const), who, off: fc.constantFrom(0, 0, 0, 0, 1, -1), turns }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('end' as const), who, off: fc.constantFrom(0, 0, 0, 0, 1, -1), turns }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('get' as const), who, position: fc.constantFrom('Begin' as const, 'Current' as const), count: fc.integer({ min: 1, max: 4 }), action: fc.constantFrom('', '', 'urn:Echo', 'urn:Other'), turns }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('purge' as const, 'leave' as const), who, turns }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), turns }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('start' as const), turns }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('task' as const), news: fc.constantFrom(...TASK_NEWS), which, turns }) },
  { weight: 9, arbitrary: fc.record({ do: fc.constant('answer' as const), how: fc.constantFrom('reply' as const, 'reply' as const, 'reply' as const, ...ANSWERS), which, turns }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('answers' as const), which, turns }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('trouble' as const), move: fc.constantFrom(...MOVES), how: fc.constantFrom('refuse' as const, 'lose' as const, 'full' as const), turns }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('time' as const), ms: fc.constantFrom(500, 1500, 6000, 21_000), turns }) }
)

/** What may be said to a client at any time: the store is away or full, or the session is on its way out. */
const ANY_TIME: readonly FaultName[] = ['StorageServiceNotAvailble', 'StorageSpaceNotSufficient', 'Broker_BrokerSuspending', 'ClientPurged', 'ClientTimeout']
const TOO_LATE: readonly FaultName[] = ['Broker_EOMReject_EndRequests', 'Broker_EOMReject_GetResponse', 'Broker_FlushRejected', 'Broker_EOMRejected']

/** One client's program: what it has sent, and what it waits for. */
interface Program {
  name: string
  key: string
  batch: number
  count: number
  sent: string[]
  /** Sent, and not answered. */
  coming: Set<string>
  gets: number
  object: BrokerClient | undefined
  connected: BrokerClient | undefined
  leave: (() => void) | undefined
  hasLeft: boolean
}

const program = (name: string): Program =>
  ({ name, key: name.toLowerCase(), batch: 0, count: 0, sent: [], coming: new Set(), gets: 0, object: undefined, connected: undefined, leave: undefined, hasLeft: false })

/** Runs commands on a rig, tells the reference what clients ask for and hear, and looks after each of them whether all fits. */
export class Interpreter {
  readonly #rig: Rig
  readonly #programs: Program[] = NAMES.map(program)
  readonly #over = new AbortController()
  /** Where the last page of a client object ended, and with which filter. */
  readonly #pages = new WeakMap<BrokerClient, { action: string, next: number }>()
  #open = 0

  constructor (rig: Rig) { this.#rig = rig }

  /** Commands that wait for something. */
  get open (): number { return this.#open }

  async run (command: Command): Promise<void> {
    const rig = this.#rig
    if (rig.isDestroyed) return
    if (rig.down === 'suspended') await this.#raise()
    await this.#do(command)
    await (command.turns === 12 ? this.#rig.rest() : settle(command.turns))
    rig.check()
    if (rig.isDestroyed) this.#checkDestroyed()
  }

  #checkDestroyed (): void {
    if (!this.#rig.isDurable) return
    for (const { key } of this.#programs) {
      const kept = this.#rig.reference.live(key).filter(({ isFlushed }) => isFlushed)
      if (kept.length > 0) throw new Error(`${key}: the session ended, and ${kept.map(({ id }) => id).join(' ')} went with it`)
    }
  }

  async #raise (): Promise<void> {
    for (const program of this.#programs) { program.object = undefined; program.leave = undefined; program.connected = undefined; program.coming.clear() }
    await this.#rig.raise()
  }

  async #do (command: Command): Promise<void> {
    const rig = this.#rig
    switch (command.do) {
      case 'send': { this.#send(this.#program(command.who), command.who === BLIND, command.what, command.which); return }
      case 'flush': case 'end': { await this.#flush(this.#program(command.who), command.do === 'end', command.off); return }
      case 'get': { this.#get(this.#program(command.who), command.position, command.count, command.action); return }
      case 'purge': { this.#purge(this.#program(command.who)); return }
      case 'leave': { if (command.who === BLIND) await this.#leave(this.#program(command.who)); return }
      case 'crash': { if (rig.isDurable) { rig.crash(); await this.#raise() } return }
      case 'start': { if (rig.tasks.length < 3) rig.start(); return }
      case 'task': { this.#tell(command.news, command.which); return }
      case 'answer': { const call = rig.calls[command.which % Math.max(1, rig.calls.length)]; if (call !== undefined) this.#answer(call, command.how); return }
      case 'answers': { const one = rig.calls[command.which % Math.max(1, rig.calls.length)]; for (const call of rig.calls.filter(({ id }) => id === one?.id)) this.#answer(call, 'reply'); return }
      case 'trouble': { if (rig.isDurable || command.how === 'full') rig.troubles.arm(command.move, command.how); return }
      case 'time': { await rig.clock.advance(command.ms); await rig.rest() }
    }
  }

  #program (who: number): Program { return this.#programs[who] as Program }

  #client (program: Program): BrokerClient | undefined {
    try {
      const client = this.#rig.session.client(program.name)
      if (client !== program.object) { program.object = client; program.hasLeft = true }
      return client
    } catch (error) {
      if (!isSoaError(error, 'Broker_BrokerSuspending')) throw error
      return undefined
    }
  }

  /** A command that waits: what comes of it is judged when it comes, if the broker that it was said to still lives. */
  #watch<T> (promise: Promise<T>, judge: (result: T) => void, refused: (error: unknown) => void): void {
    const { life } = this.#rig
    const then = (run: () => void) => (): void => { if (!life.isOver && !this.#over.signal.aborted) this.#rig.watch(run) }
    this.#open++
    promise.finally(() => { this.#open-- }).then(result => then(() => judge(result))(), (error: unknown) => then(() => refused(error))())
  }

  #refusal (key: string, what: string, error: unknown, also: readonly FaultName[] = []): void {
    if (isSoaError(error) && (ANY_TIME.includes(error.fault) || also.includes(error.fault))) return
    if (isSoaError(error) && TOO_LATE.includes(error.fault) && (this.#rig.reference.client(key).isEnded || this.#rig.reference.client(key).purging > 0)) return
    throw new Error(`${key}: ${what} was refused: ${String(error)}`, { cause: error })
  }

  #send (program: Program, isBlind: boolean, what: 'new' | 'again' | 'nextBatch', which: number): void {
    const { reference, isDurable } = this.#rig
    const { key } = program
    const client = this.#client(program)
    if (client === undefined) return
    // It does not begin anew while it waits for its Flush.
    if (program.hasLeft && isBlind && reference.client(key).flushes.size > 0) return
    if (isBlind && program.connected !== client) {
      program.leave?.()
      program.leave = client.connect()
      program.connected = client
    }
    // One who hears nothing has to begin anew when it comes back.
    if (program.hasLeft && isBlind) this.#startAnew(key)
    program.hasLeft = false
    if (what === 'nextBatch' && isDurable) { program.batch++; reference.startAnew(key, program.batch) }
    const twin = what === 'again' ? program.sent[which % Math.max(1, program.sent.length)] ?? '' : ''
    const again = program.coming.has(twin) || reference.find(twin) !== undefined ? twin : undefined
    const envelope = this.#rig.envelope(key, again === undefined ? ++program.count : Number(again.split('-')[1]))
    const id = envelope.messageId as string
    program.sent.push(id)
    const isNew = reference.find(id) === undefined
    if (isNew) program.coming.add(id)
    const { batch } = program
    this.#watch(client.accept(envelope, isDurable ? batch : -1, this.#over.signal, !isBlind), () => {
      program.coming.delete(id)
      if (!reference.wasKept(id)) throw new Error(`${key}: ${id} was acknowledged, and is not kept`)
    }, error => {
      program.coming.delete(id)
      if (isSoaError(error, 'StorageServiceNotAvailble')) reference.doubted(id)
      this.#refusal(key, `sending ${id}`, error, batch < reference.client(key).batch ? ['InvalidArgument'] : [])
    })
  }

  #startAnew (key: string): void {
    const { reference, isDurable } = this.#rig
    if (isDurable) reference.startAnew(key, reference.client(key).batch)
    else for (const entry of reference.unflushed(key)) entry.isFlushed = entry.isHeard = true
  }

  async #flush (program: Program, endOfMessages: boolean, off: number): Promise<void> {
    const { key } = program
    const { reference } = this.#rig
    if (off < 0) await this.#rig.rest()
    const client = this.#client(program)
    if (client === undefined) return
    const unflushed = reference.announced(key)
    const coming = [...program.coming].filter(id => !unflushed.some(entry => entry.id === id)).length
    // One too many would be met by what a sender has given up and a crash has kept.
    const hasVoid = reference.live(key).some(({ isVoid }) => isVoid)
    const count = unflushed.length + coming + (hasVoid ? Math.min(0, off) : off)
    if (count < (endOfMessages ? 0 : 1)) return
    const of = reference.client(key)
    const batchId = this.#rig.isDurable ? program.batch : -1
    const call: FlushCall = { count, endOfMessages, batch: batchId, covered: undefined }
    of.flushes.add(call)
    // Interactive: who has left without the end goes with all that it has, and that may be on its way.
    const hasNone = of.entries.size === 0 || (program.hasLeft && !this.#rig.isDurable)
    const options = { batchId, timeoutMs: 5000, signal: this.#over.signal }
    this.#watch(endOfMessages ? client.endRequests(count, options) : client.flush(count, options), () => {
      of.flushes.delete(call)
      reference.heard(key, call)
      if (call.covered === undefined && batchId === (this.#rig.isDurable ? program.batch : -1)) throw new Error(`${key}: ${endOfMessages ? 'EndRequests' : 'Flush'}(${count}) was answered, and nothing was committed`)
    }, error => {
      of.flushes.delete(call)
      if (isSoaError(error) && TOO_LATE.includes(error.fault)) reference.heardOfEnd(key)
      this.#refusal(key, `Flush(${count})`, error, hasNone || reference.client(key).purging > 0 || reference.live(key).every(({ isVoid }) => isVoid) ? ['OperationTimeout', 'Broker_EOMReject_NoRequest'] : ['OperationTimeout'])
    })
  }

  #get (program: Program, position: Position, count: number, action: string): void {
    const { key } = program
    const { reference, session, isDurable } = this.#rig
    if (program.gets >= 3) return
    const client = this.#client(program)
    if (client === undefined) return
    const of = reference.client(key)
    program.gets++
    this.#watch(client.pull(position, count, action, { maxBytes: 1e9, signal: this.#over.signal, end: () => session.readEnd() }).finally(() => { program.gets-- }), page => {
      if (reference.client(key) !== of) return // purged meanwhile: it may have got what was there
      const last = this.#pages.get(client)
      const from = position === 'Begin' ? (isDurable ? 0 : undefined) : last?.action === action ? last.next : undefined
      reference.pulled(key, page, { action, count, from })
      const end = page.responses.at(-1)
      const next = end === undefined ? from : end.at + 1
      if (next === undefined) this.#pages.delete(client)
      else this.#pages.set(client, { action, next })
    }, error => this.#refusal(key, 'getting responses', error, ['Service_InitializeFailed']))
  }

  #purge (program: Program): void {
    const { key, name } = program
    const { reference, session } = this.#rig
    const of = reference.client(key)
    const kept = reference.live(key)
    of.purging++
    this.#watch(session.purge(name), () => {
      const left = kept.filter(({ isPurged, isForgotten }) => !isPurged && !isForgotten)
      if (left.length > 0) throw new Error(`${key}: purged, and ${left.map(({ id }) => id).join(' ')} is there`)
      reference.client(key).purging = 0 // a client that has nothing has nothing to take out
    }, error => this.#refusal(key, 'purge', error))
  }

  async #leave (program: Program): Promise<void> {
    if (program.leave === undefined) return
    await this.#rig.rest()
    // A channel that outlived its client object takes nothing along.
    if (program.connected?.state !== 'Disconnected') this.#startAnew(program.key)
    program.leave()
    program.leave = program.connected = undefined
    program.hasLeft = true
  }

  #tell (news: (typeof TASK_NEWS)[number], which: number): void {
    const rig = this.#rig
    const task = rig.tasks[which % Math.max(1, rig.tasks.length)]
    if (task === undefined) return
    if (news === 'lost') rig.tell(task, 'Failed')
    else if (news === 'Failed') rig.tell(task, 'Failed', { code: 1, signal: null, stderr: '', why: 'exit code 1' })
    else if (news !== 'Running' || task.state === 'Running') rig.tell(task, news)
  }

  #answer (call: Call, how: (typeof ANSWERS)[number]): void {
    const rig = this.#rig
    switch (how) {
      case 'reply': { call.answer(rig.reply(call)); return }
      case 'fault': { call.answer(rig.reply(call, true, 'urn:mine')); return }
      case 'retry': {
        rig.count(call.id, 'sure')
        const reason = '<s:Code><s:Value>s:Receiver</s:Value></s:Code><s:Reason><s:Text xml:lang="en">no</s:Text></s:Reason>'
        const body = Buffer.from(`<s:Fault xmlns:s="${SOAP12}">${reason}<s:Detail>${RETRY}</s:Detail></s:Fault>`)
        const fault = { ...call.envelope, action: 'http://hpc.microsoft.com/session/RetryOperationError', body }
        call.answer({ outcome: 'answered', reading: { ...reading(fault, true), bodyElement: `{${SOAP12}}Fault` } })
        return
      }
      case 'preempted': {
        rig.doomed.add(call.taskId)
        const fault = toFault(new SoaError('Service_Preempted', { left: 1 }), { soap: 12, addressed: true })
        call.answer({ outcome: 'answered', reading: { ...reading(fault, true), bodyElement: `{${SOAP12}}Fault`, preemption: 1 } })
        return
      }
      case 'broken': { rig.count(call.id, 'maybe'); call.answer({ outcome: 'broken', error: new Error('reset') }); return }
      case 'timedOut': { rig.count(call.id, 'sure'); call.answer({ outcome: 'timedOut' }); return }
      case 'badReply': { rig.count(call.id, 'sure'); call.answer({ outcome: 'badReply', error: new Error('no SOAP') }); return }
      case 'unreachable': call.answer({ outcome: 'unreachable', error: new Error('refused') })
    }
  }

  /** No more troubles: instances run, all calls are answered, and what was promised must come true. */
  async finish (): Promise<void> {
    const rig = this.#rig
    const { reference } = rig
    const keys = this.#programs.map(({ key }) => key)
    for (let round = 0; !rig.isDestroyed; round++) {
      // Who was told that the store is away says it again.
      for (const program of round > 0 && rig.down === undefined ? this.#programs : []) {
        const { flushes, isEnded } = reference.client(program.key)
        if (reference.isUnsure(program.key) && flushes.size === 0) await this.#flush(program, isEnded, 0)
      }
      rig.troubles.clear()
      if (rig.down === 'suspended') await this.#raise()
      for (const task of rig.tasks.filter(({ id }) => rig.doomed.has(id))) rig.tell(task, 'Canceled')
      if (rig.tasks.every(({ state }) => state !== 'Running')) rig.start()
      await this.#rig.rest()
      for (let i = 0; i < 40 && rig.calls.length > 0; i++) {
        for (const call of [...rig.calls]) call.answer(rig.reply(call))
        await this.#rig.rest()
        rig.check()
      }
      const waiting = keys.flatMap(key => reference.live(key)).filter(entry => entry.at === undefined && (rig.isDurable ? entry.isFlushed : true))
      const isFlushing = keys.some(key => reference.isUnsure(key) || reference.client(key).flushes.size > 0)
      if (waiting.length === 0 && this.#sending === 0 && !isFlushing && round > 2) break
      if (round > 60) throw new Error(`never answered: ${waiting.map(({ id }) => id).join(' ')}; ${this.#sending} still being sent`)
      await rig.clock.advance(1100)
      await rig.rest()
      rig.check()
    }
    if (rig.isDestroyed) { this.#checkDestroyed(); return }
    reference.checkAtRest(rig.session.counters, false, rig.troubles.unheard)
    await this.#readAll()
    if (!rig.isDurable) return
    rig.crash()
    await this.#raise()
    await this.#rig.rest()
    rig.check()
    reference.checkAtRest(rig.session.counters, true, 0)
    await this.#readAll()
  }

  get #sending (): number { return this.#programs.reduce((sum, { coming }) => sum + coming.size, 0) }

  /** Each client reads all from the beginning: once each what was promised, and the end if it has ended. */
  async #readAll (): Promise<void> {
    const rig = this.#rig
    for (const program of this.#programs) {
      const answered = rig.reference.live(program.key).filter(({ at }) => at !== undefined)
      const { isEnded } = rig.reference.client(program.key)
      if (answered.length === 0) continue
      this.#over.abort(new Error('the run is over'))
      await this.#rig.rest()
      const client = this.#client(program)
      if (client === undefined) throw new Error('the session is ending')
      const page = await Promise.race([
        client.pull('Begin', isEnded ? 1000 : answered.length, '', { maxBytes: 1e9, signal: new AbortController().signal, end: () => rig.session.readEnd() }),
        this.#rig.rest().then(() => { if (rig.isDurable || isEnded) throw new Error(`${program.key}: ${answered.length} responses are there${isEnded ? ' and the end' : ''}, and reading all of them waits`) }),
      ])
      if (page === undefined) continue
      rig.reference.pulled(program.key, page, { action: '', count: 1000, from: rig.isDurable ? 0 : undefined })
      if (rig.isDurable && page.responses.length !== answered.length) throw new Error(`${program.key}: ${page.responses.length} of ${answered.length} responses came`)
      if (isEnded && !page.endOfMessages) throw new Error(`${program.key}: the end did not come with the last`)
    }
  }

  stop (): void { this.#over.abort(new Error('the run is over')) }
}
