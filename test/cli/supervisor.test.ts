import t from 'tap'
import type { Clock } from '../../core/clock.ts'
import { silent } from '../../core/log.ts'
import { CommandFailed } from '../../cli/exit-codes.ts'
import { Supervisor, type Needs } from '../../cli/up/supervisor.ts'
import { gone } from './helpers.ts'

/** Time stands still; the pauses between starts are noted and over at once, and nothing ever times out. */
function noted (): { clock: Clock, pauses: number[] } {
  const pauses: number[] = []
  return {
    pauses,
    clock: {
      now: () => 0,
      after (ms, call) {
        if (ms > 5000) return () => {}
        pauses.push(ms)
        const timer = setImmediate(call)
        return () => clearImmediate(timer)
      }
    }
  }
}

const needs = (clock: Clock, script: string, more: Partial<Needs> = {}): Needs => ({
  name: 'child', program: () => ({ command: '/bin/sh', args: ['-c', script], env: { PATH: process.env.PATH } }), ready: child => child.firstLine, readyTimeoutMs: 60_000, graceMs: 60_000, clock, log: silent, ...more
})

t.test('supervisor: a child that dies again and again is given up after ten deaths in a minute, with ever longer pauses before', async t => {
  const { clock, pauses } = noted()
  const pids: number[] = []
  const supervisor = new Supervisor(needs(clock, 'echo ready; exec sleep 600', {
    ready: async child => {
      await child.firstLine
      pids.push(child.pid)
      setImmediate(() => process.kill(child.pid, 'SIGKILL'))
    }
  }))
  await supervisor.start()
  await t.rejects(supervisor.watch(), new CommandFailed(1, 'child ended 11 times within a minute, the last time with signal SIGKILL: gave up'))
  t.strictSame(pauses, [200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000, 5000])
  t.equal(new Set(pids).size, 11)
})

t.test('supervisor: an end that says "no use" is not tried again', async t => {
  const { clock, pauses } = noted()
  const supervisor = new Supervisor(needs(clock, 'echo ready; read line < /dev/null; exit 5', { ready: async child => { await child.ended } }))
  await t.rejects(supervisor.start(), { exitCode: 5, message: 'child did not start (exit code 5); the lines above say why' }, 'ended before it was ready')
  t.strictSame(pauses, [])
})

t.test('supervisor: a child that is not ready in time is ended', async t => {
  const clock: Clock = { now: () => 0, after: (_, call) => { const timer = setImmediate(call); return () => clearImmediate(timer) } }
  let pid = 0
  const supervisor = new Supervisor(needs(clock, 'exec sleep 600', { ready: child => { pid = child.pid; return child.firstLine } }))
  await t.rejects(supervisor.start(), { message: 'child was not ready within 60000 ms' })
  await gone(pid)
})

t.test('supervisor: what a child left in its group goes with it', async t => {
  const { clock } = noted()
  let grandchild = 0
  const supervisor = new Supervisor(needs(clock, 'sleep 600 & echo $!; exec sleep 600', { ready: async child => { grandchild = Number(await child.firstLine) } }))
  await supervisor.start()
  const watching = supervisor.watch()
  t.ok(grandchild > 0)
  await supervisor.stop(new AbortController().signal)
  await gone(grandchild)
  await t.resolves(watching)
})
