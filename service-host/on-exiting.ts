/** What services asked to have called when their host is told to end; one list for the process, which every copy of `soa-broker/service` finds. */
const HANDLERS = Symbol.for('soa-broker.onExiting')

export function exitingHandlers (): Set<() => unknown> {
  const here = globalThis as { [HANDLERS]?: Set<() => unknown> }
  return (here[HANDLERS] ??= new Set())
}
