import { writeSync } from 'node:fs'
import { onExiting } from 'soa-broker/service'

onExiting(() => { writeSync(2, `task ${process.env.CCP_TASKINSTANCEID} puts its things away\n`) })

const last = words => writeSync(2, `${words}\n`)

const WAYS = {
  echo: () => 'well',
  throw () { throw new Error('a secret of the service') },
  rejectLater: () => new Promise((resolve, reject) => setTimeout(reject, 50, new Error('late'))),
  rejectUnwatched () { Promise.reject(new Error('nobody waits')); return 'well' },
  megabytes () { throw { Fault: { faultcode: 'Server', faultstring: 'x'.repeat(3_000_000) } } }, // eslint-disable-line no-throw-literal
  flood () {
    const line = `${'#'.repeat(1023)}\n`
    for (let n = 0; n < 3000; n++) { process.stdout.write(line); process.stderr.write(line) }
    return 'well'
  },
  segv () { last('about to touch what is not mine'); process.kill(process.pid, 'SIGSEGV'); return new Promise(() => {}) },
  exit139 () { last('about to exit 139'); process.exit(139) },
  loop () { last('about to loop'); for (;;); }
}

export default { Do: async ({ what }) => ({ DoResult: await WAYS[what]() }) }
