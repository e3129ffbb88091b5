import { systemClock as clock } from '../../core/clock.ts'
import { silent as log } from '../../core/log.ts'
import { Guardian } from '../../node-manager/guardian.ts'
import { HostProcess } from '../../node-manager/host-process.ts'

// A process to be killed by tests: a guardian, and one host that is a shell with a child, which has a child. Prints the guardian's pid, again when it is another.
const guardian = new Guardian({ clock, log })
guardian.start()
const keeper = new HostProcess({
  command: '/bin/sh',
  args: ['-c', 'sh -c "setsid sleep 1000; true" & wait'],
  env: { PATH: '/usr/bin:/bin', MARK: process.argv[2] ?? '' },
  cwd: '/',
  stderrFile: ''
}, { guardian, clock, log })
keeper.ended.catch(error => { throw error })
let told: number | undefined
setInterval(() => {
  if (guardian.pid === told || guardian.pid === undefined) return
  told = guardian.pid
  process.stdout.write(`${JSON.stringify({ guardian: told })}\n`)
}, 5)
