const WIDTH = 40

export interface Progress {
  /** So many of all are done. */
  show (done: number): void
  end (): void
}

/** A bar that is redrawn in place on a terminal; elsewhere (a log, a pipe) one line for each tenth. */
export function progress (out: NodeJS.WriteStream, all: number): Progress {
  let tenths = 0
  let drawn = -1
  const bar = (done: number): string => {
    const filled = Math.floor(WIDTH * done / all)
    return `[${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}] ${String(done).padStart(String(all).length)}/${all} ${String(Math.floor(100 * done / all)).padStart(3)} %`
  }
  return {
    show (done) {
      if (out.isTTY) {
        // A terminal shows no more than this many steps, and each costs a system call.
        const step = Math.floor(done * 200 / all)
        if (step === drawn && done < all) return
        drawn = step
        out.write(`\r${bar(done)}`)
        return
      }
      while (tenths < 10 && done >= all * (tenths + 1) / 10) out.write(`${++tenths * 10} % (${Math.ceil(all * tenths / 10)} of ${all} responses)\n`)
    },
    end () { if (out.isTTY) out.write('\n') }
  }
}
