import { appendFileSync } from 'node:fs'

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

/** `{"env": true}`: what the host was told of its cores. `{"id", "ms", "log"}`: takes so long, and says in the file when it begins and when it ends. */
export default {
  async Do ({ what }) {
    const { env, id, ms, log } = JSON.parse(what)
    if (env) return { DoResult: JSON.stringify({ cores: process.env.CCP_NUMCPUS, ids: process.env.CCP_COREIDS }) }
    appendFileSync(log, `begin ${id}\n`)
    await sleep(ms)
    appendFileSync(log, `end ${id}\n`)
    return { DoResult: String(id) }
  }
}
