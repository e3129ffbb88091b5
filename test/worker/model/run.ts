import fc from 'fast-check'
import type { Test } from 'tap'
import { command, Interpreter, type Command } from './commands.ts'
import { Rig, type Backing } from './rig.ts'

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
  const result = await fc.check(property, { numRuns: Number(more ?? runs), ...(seed === undefined ? {} : { seed: Number(seed) }), ...(path === undefined ? {} : { path }) })
  if (!result.failed) { t.comment(`${result.numRuns} runs, ${commands} commands, seed ${result.seed}`); t.pass('all fits'); return }
  const [list = []] = result.counterexample ?? []
  const error = result.errorInstance
  t.fail(`run ${result.numRuns}: ${error instanceof Error ? error.message : String(error)}`, {
    again: `MODEL_SEED=${result.seed} MODEL_PATH=${result.counterexamplePath ?? ''}`,
    shortest: list.map(written),
    thrown: error instanceof Error ? String(error.stack).split('\n').slice(1, 8) : [],
  })
}
