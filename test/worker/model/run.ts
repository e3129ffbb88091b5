import fc from 'fast-check'
import type { Test } from 'tap'
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
  // who had read all and came back read for ever
  [say('start'), say('send 0', 12), say('answer', 12, { how: 'reply' }), say('get 0', 12), say('get 0'), say('end 0', 12), say('time', 12, { ms: 21_000 }), say('get 0', 12)],
]

export interface ModelOptions {
  durable: boolean
  runs: number
  /** Most commands in a run. */
  length: number
  backing: (run: number) => Backing
}

const written = ({ turns, ...rest }: Command): string => `${Object.values(rest).join(' ')} · ${turns}`

/** MODEL_SEED, MODEL_RUNS and MODEL_PATH say what is run; a failure prints the first two of them, and the shortest list of commands that fails. */
export async function model (t: Test, { durable, runs, length, backing }: ModelOptions): Promise<void> {
  const { MODEL_SEED: seed, MODEL_RUNS: more, MODEL_PATH: path } = process.env
  let run = 0
  let commands = 0
  const property = fc.asyncProperty(fc.array(command, { maxLength: length, size: 'max' }), async list => {
    const rig = new Rig(durable, backing(++run))
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
  const examples = path === undefined ? FOUND.map(list => [list] as [Command[]]) : []
  const result = await fc.check(property, { examples, numRuns: Number(more ?? runs), ...(seed === undefined ? {} : { seed: Number(seed) }), ...(path === undefined ? {} : { path }) })
  if (!result.failed) { t.comment(`${result.numRuns} runs, ${commands} commands, seed ${result.seed}`); t.pass('all fits'); return }
  const [list = []] = result.counterexample ?? []
  const error = result.errorInstance
  t.fail(`run ${result.numRuns}: ${error instanceof Error ? error.message : String(error)}`, {
    again: `MODEL_SEED=${result.seed} MODEL_PATH=${result.counterexamplePath ?? ''}`,
    shortest: list.map(written),
    thrown: error instanceof Error ? String(error.stack).split('\n').slice(1, 8) : [],
  })
}
