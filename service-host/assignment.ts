import { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'

/** What a warm host waits for: all that a cold one is started with. */
export interface Assignment {
  /** All of its environment from then on. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

/** The descriptor that the node manager holds the other end of. Not stdin: a service finds that as empty as in a host that was started cold. */
const ASSIGNMENT_FD = 3
/** A service's environment is some kilobytes; Linux takes no larger one than 2 MiB. */
const MAX_ASSIGNMENT = 4_194_304

/**
 * Rehearses, says that this host is warm, then waits for one line of JSON, however long that takes. Undefined: the other end is gone, so nobody will ever need
 * it. Afterwards the descriptor is closed, and environment and folder are those of the assignment.
 */
export async function awaitAssignment (rehearse: () => Promise<void>): Promise<Assignment | undefined> {
  const socket = new Socket({ fd: ASSIGNMENT_FD, readable: true, writable: true })
  let text = ''
  const told = new Promise<string | undefined>((resolve, reject) => {
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part
      if (text.length > MAX_ASSIGNMENT) reject(new Error(`the assignment of a warm host has more than ${MAX_ASSIGNMENT} characters`))
      if (text.endsWith('\n')) resolve(text)
    })
    socket.on('close', () => resolve(undefined)).on('error', () => resolve(undefined))
  })
  told.catch(() => { /* awaited below */ })
  // A task that is waiting already must not wait for a rehearsal.
  await turn()
  await turn()
  if (text === '') await rehearse()
  socket.write('warm\n')
  const line = await told.finally(() => socket.destroy())
  if (line === undefined) return undefined
  const { env, cwd } = JSON.parse(line) as Assignment
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  process.chdir(cwd)
  return { env, cwd }
}
