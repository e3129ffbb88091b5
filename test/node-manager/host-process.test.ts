import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { sleep, systemClock as clock } from '../../core/clock.ts'
import { silent as log } from '../../core/log.ts'
import { Guardian } from '../../node-manager/guardian.ts'
import { HostProcess, type HostCommand } from '../../node-manager/host-process.ts'

const guardianOf = (t: Test): Guardian => {
  const guardian = new Guardian({ clock, log })
  guardian.start()
  t.teardown(() => guardian.close())
  return guardian
}
const shell = (script: string, more: Partial<HostCommand> = {}): HostCommand =>
  ({ command: '/bin/sh', args: ['-c', script], env: { PATH: '/usr/bin:/bin' }, cwd: '/', stderrFile: '', ...more })

/** Pids of living processes whose environment has this mark. */
async function marked (mark: string): Promise<number[]> {
  const found: number[] = []
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const env = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    if (env.includes(`MARK=${mark}`)) found.push(Number(pid))
  }
  return found
}
/** Resolves when `holds` is true; the test's own time limit bounds it. */
async function until (holds: () => Promise<boolean> | boolean): Promise<void> {
  while (!await holds()) await sleep(clock, 10)
}

t.test('host process: exit code, signal and the last of what it said', async t => {
  const needs = { guardian: guardianOf(t), clock, log }
  t.match(await new HostProcess(shell('echo out; echo wrong >&2; exit 3'), needs).ended, { code: 3, signal: null, stderr: /wrong/ })
  t.match(await new HostProcess(shell('kill -9 $$'), needs).ended, { code: null, signal: 'SIGKILL' })
})

t.test('host process: a command that is not there says so', async t => {
  const needs = { guardian: guardianOf(t), clock, log }
  t.match(await new HostProcess(shell('', { command: '/no/such/host', args: [] }), needs).ended, { code: 127, stderr: /no\/such\/host.*not found/ })
  t.match(await new HostProcess(shell('', { cwd: '/no/such/folder' }), needs).ended, { code: null, error: { code: 'ENOENT' } })
})

t.test('host process: megabytes of output leave 4 KiB', async t => {
  const { stderr, code } = await new HostProcess(shell('head -c 3000000 /dev/zero | tr "\\0" x >&2; echo THE END >&2'), { guardian: guardianOf(t), clock, log }).ended
  t.equal(code, 0)
  t.ok(stderr.endsWith('THE END\n'), 'the end of it')
  t.ok(stderr.length <= 4096, `${stderr.length} characters`)
})

t.test('host process: children that it leaves behind do not outlive it, not even those that leave its process group', async t => {
  const mark = `left-${process.pid}`
  const host = new HostProcess(shell('sleep 1000 & setsid sleep 1000 & sleep 0.1; exit 0', { env: { PATH: '/usr/bin:/bin', MARK: mark } }), { guardian: guardianOf(t), clock, log })
  t.match(await host.ended, { code: 0 })
  t.same(await marked(mark), [])
})

t.test('host process: SIGTERM reaches the whole group, and one that ignores it is killed', async t => {
  const mark = `term-${process.pid}`
  const needs = { guardian: guardianOf(t), clock, log }
  const polite = new HostProcess(shell('sleep 1000', { env: { PATH: '/usr/bin:/bin', MARK: mark } }), needs)
  await until(async () => (await marked(mark)).length > 0)
  polite.terminate()
  t.match(await polite.ended, { signal: 'SIGTERM' })
  const stubborn = new HostProcess(shell('trap "" TERM; sleep 1000; sleep 1000', { env: { PATH: '/usr/bin:/bin', MARK: mark } }), needs)
  await until(async () => (await marked(mark)).length >= 2)
  stubborn.terminate()
  stubborn.kill()
  t.match(await stubborn.ended, { signal: 'SIGKILL' })
  t.same(await marked(mark), [])
})

t.test('host process: a copy of stderr goes to the file that the registration names', async t => {
  const dir = await mkdtemp(join(tmpdir(), 'soa-host-'))
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  await new HostProcess(shell('echo kept >&2', { stderrFile: join(dir, 'err.txt') }), { guardian: guardianOf(t), clock, log }).ended
  await until(async () => (await readFile(join(dir, 'err.txt'), 'utf8').catch(() => '')) === 'kept\n')
  t.pass('kept')
})

const FIXTURE = fileURLToPath(new URL('./keeper.js', import.meta.url))
for (const guarded of [true, false]) {
  t.test(`host process: kill -9 of its parent kills the host${guarded ? ', its children and the guardian goes' : ' even when the guardian was killed before'}`, async t => {
    const mark = `kill9-${guarded}-${process.pid}`
    const keeper = spawn(process.execPath, [FIXTURE, mark], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => { keeper.kill('SIGKILL') })
    const [line] = await once(createInterface({ input: keeper.stdout }), 'line') as [string]
    const { guardian } = JSON.parse(line) as { guardian: number }
    await until(async () => (await marked(mark)).length === 3)
    if (!guarded) {
      process.kill(guardian, 'SIGSTOP') // alive, so that no other takes its place, and of no use
      t.teardown(() => { process.kill(guardian, 'SIGKILL') })
    }
    keeper.kill('SIGKILL')
    await until(async () => (await marked(mark)).length <= (guarded ? 0 : 2))
    if (guarded) {
      await until(() => !isAlive(guardian))
    } else {
      process.kill(guardian, 'SIGCONT')
      await until(async () => (await marked(mark)).length === 0)
    }
    t.pass('none left')
  })
}

t.test('guardian: killed, another one takes its place and knows the hosts', async t => {
  const mark = `respawn-${process.pid}`
  const keeper = spawn(process.execPath, [FIXTURE, mark], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => { keeper.kill('SIGKILL') })
  const lines = createInterface({ input: keeper.stdout })
  const [line] = await once(lines, 'line') as [string]
  await until(async () => (await marked(mark)).length === 3)
  const next = once(lines, 'line') as Promise<[string]>
  process.kill((JSON.parse(line) as { guardian: number }).guardian, 'SIGKILL')
  const { guardian } = JSON.parse((await next)[0]) as { guardian: number }
  keeper.kill('SIGKILL')
  await until(async () => (await marked(mark)).length === 0 && !isAlive(guardian))
  t.pass('none left')
})

function isAlive (pid: number): boolean {
  try { return process.kill(pid, 0) } catch { return false }
}
