import fc from 'fast-check'
import type { Test } from 'tap'
import type { Settings } from '../../../config/settings.ts'
import { command, Interpreter, type Command } from './commands.ts'
import { Rig, type Backing } from './rig.ts'

const say = (what: string, turns = 0, more: object = {}): Command => {
  const [name, who] = what.split(' ')
  return { do: name, who: Number(who ?? 0), what: 'new', which: 0, off: 0, position: 'Current', count: 1, action: '', turns, ...more } as Command
}

/** What this test has found, at their shortest: run first, each time. */
const FOUND: Command[][] = [
  // kept twice: the answer of an append was lost, and its sender sent again
  [say('trouble', 0, { move: 'append', how: 'lose' }), say('send 0', 12), say('send 0', 12, { what: 'again' }), say('flush 0', 12)],
  // the end mark landed with nothing else, unheard, and a newer batch began
  [say('send 0', 12), say('flush 0', 12), say('trouble', 0, { move: 'commit', how: 'lose' }), say('end 0', 12), say('send 0', 12, { what: 'nextBatch' })],
  // thrown away by no more than half: the store was away when the older batch was to be forgotten
  [say('trouble', 0, { move: 'discard', how: 'refuse' }), say('send 0', 12), say('send 0', 12, { what: 'nextBatch' }), say('send 0', 12), say('end 0', 12)],
  // the answer of a purged client's request came to the next client of its id
  [say('start'), say('trouble', 0, { move: 'settle', how: 'full' }), say('send 2', 12), say('flush 2', 12), say('answer', 0, { how: 'reply' }), say('purge 2'), say('send 2'), say('time', 12, { ms: 1500 }), say('end 2', 12)],
  // a purge that was tried again took the next client's requests along
  [say('send 1', 12), say('trouble', 0, { move: 'purge', how: 'refuse' }), say('purge 1'), say('send 1'), say('purge 1'), say('send 1'), say('time', 12, { ms: 1500 }), say('end 1', 12)],
  // not a fault of the broker, the reference took the message that was flushed for the one in doubt: sent again to a broker raised anew, kept, unheard
  [say('send 0', 12), say('flush 0', 12), say('crash'), say('trouble', 0, { move: 'append', how: 'lose' }), say('send 0', 0, { what: 'again' }), say('get 0', 12)],
  // a Flush behind an EndRequests whose answer was lost: the end was stored, and the broker did not know it
  [say('send 0'), say('trouble', 0, { move: 'commit', how: 'lose' }), say('end 0'), say('flush 0'), say('get 0', 12, { position: 'Begin' }), say('send 0', 0, { what: 'nextBatch' })],
  // the reference's fault: a Flush that repeats what is done, and a newer batch
  [say('trouble', 0, { move: 'commit', how: 'lose' }), say('send 2'), say('end 2'), say('send 0', 12), say('flush 2'), say('send 2', 0, { what: 'nextBatch' })],
  // who had read all and came back read for ever
  [say('start'), say('send 0', 12), say('answer', 12, { how: 'reply' }), say('get 0', 12), say('get 0'), say('end 0', 12), say('time', 12, { ms: 21_000 }), say('get 0', 12)],
]

export interface ModelOptions {
  durable: boolean
  runs: number
  /** Most commands in a run. */
  length: number
  backing: (run: number) => Backing
  /** What the session has beside the rig's. */
  settings?: Partial<Settings>
}

/** The seed of a run that is told nothing else: a failure of it is a failure for everybody. MODEL_SEED=random looks elsewhere. */
const SEED = 20_261_130

/**
 * MODEL_SEED and MODEL_RUNS say what is run. A failure prints the seed and the shortest list of commands that fails, as the value of MODEL_LIST that runs this list
 * alone.
 */
export async function model (t: Test, { durable, runs, length, backing, settings }: ModelOptions): Promise<void> {
  const { MODEL_SEED, MODEL_RUNS, MODEL_LIST } = process.env
  const seed = MODEL_SEED === 'random' ? Date.now() % 0x7fff_ffff : Number(MODEL_SEED ?? SEED)
  let run = 0
  let commands = 0
  const property = fc.asyncProperty(fc.array(command, { maxLength: length, size: 'max' }), async list => {
    const rig = new Rig(durable, backing(++run), settings)
    await rig.raise(true)
    const interpreter = new Interpreter(rig)
    try {
      for (const each of list) { await interpreter.run(each); commands++ }
      await interpreter.finish()
    } finally {
      interpreter.stop()
      await rig.close()
    }
  })
  const examples: Array<[Command[]]> = MODEL_LIST === undefined ? FOUND.map(list => [list]) : [[JSON.parse(MODEL_LIST) as Command[]]]
  const numRuns = MODEL_LIST === undefined ? Number(MODEL_RUNS ?? runs) : 1
  const result = await fc.check(property, { examples, numRuns, seed })
  if (!result.failed) { t.comment(`${result.numRuns} runs, ${commands} commands, seed ${seed}`); t.pass('all fits'); return }
  const [list = []] = result.counterexample ?? []
  const error = result.errorInstance
  t.fail(`run ${result.numRuns}: ${error instanceof Error ? error.message : String(error)}`, {
    again: [`MODEL_SEED=${seed}`, `MODEL_LIST='${JSON.stringify(list)}'`],
    thrown: error instanceof Error ? String(error.stack).split('\n').slice(1, 8) : [],
  })
}
