import { freePort } from '../transport/free-port.ts'

const TRIES = 50

/** Ports for hosts of this node. A port that was handed out is not handed out again before it is given back: between our close and the host's bind it looks free. */
export class Ports {
  readonly #host: string
  readonly #taken = new Set<number>()

  constructor (host: string) { this.#host = host }

  async take (): Promise<number> {
    for (let i = 0; i < TRIES; i++) {
      const port = await freePort(this.#host)
      if (this.#taken.has(port)) continue
      this.#taken.add(port)
      return port
    }
    throw new Error(`no free port on ${this.#host} after ${TRIES} tries`)
  }

  giveBack (port: number): void { this.#taken.delete(port) }
}

/** HPC Pack's port of a task by its first core ([broker-behaviour] 7.3). */
export const hpcPort = (firstCore: number): number => firstCore < 100 ? 9100 + firstCore : 9300 + 2 * (firstCore - 100)

/** And that of its controller. */
export const hpcControllerPort = (firstCore: number): number => firstCore < 100 ? 9200 + firstCore : 9301 + 2 * (firstCore - 100)
