/** Runs of `work` per second of processor time, after a warm-up. */
export function perSecond (work: () => unknown): number {
  const runFor = (ms: number): number => {
    const start = process.cpuUsage()
    for (let rounds = 0; ;) {
      for (let i = 0; i < 20; i++) work()
      rounds += 20
      const { user, system } = process.cpuUsage(start)
      if (user + system > ms * 1000) return Math.round(rounds / (user + system) * 1e6)
    }
  }
  runFor(300)
  return runFor(800)
}
