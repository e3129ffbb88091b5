import { CommandFailed, EXIT, explain } from '../exit-codes.ts'
import { print, type Io } from '../io.ts'

/** `value` is what --json prints. */
export interface Done { readonly value: object, readonly lines: () => string[] }

/**
 * Does something for each of these ids, one after the other. Of one alone it is said as of any command. Of several each has its result: a line on stdout, or its refusal on stderr, and with --json
 * `{items: […]}` with `error` in those that were refused; one refusal does not keep the others from their turn, but makes the exit code: its own, when all refusals have the same, else 1.
 * `isList`: one alone, or none, is said as of several.
 */
export async function forEach (io: Io, asJson: boolean | undefined, name: string, ids: readonly string[], act: (id: string) => Promise<Done>, { isList = false } = {}): Promise<void> {
  const all = [...new Set(ids)]
  if (all.length === 1 && !isList) {
    const { value, lines } = await act(all[0] as string)
    print(io, asJson, value, lines)
    return
  }
  const items: object[] = []
  const codes = new Set<number>()
  for (const [i, id] of all.entries()) {
    try {
      const { value, lines } = await act(id)
      if (asJson !== true) for (const line of lines()) io.out(line)
      items.push(value)
    } catch (error) {
      const { exitCode, line } = explain(error)
      io.err(`soa: ${id}: ${line}`)
      items.push({ [name]: id, error: line })
      codes.add(exitCode)
      // No answer of a head at all, or Ctrl-C: the next one would fare no better.
      if (io.signal.aborted || (error instanceof CommandFailed && error.cause !== undefined)) {
        const left = all.slice(i + 1)
        if (left.length > 0) io.err(`soa: not tried: ${left.join(' ')}`)
        for (const id of left) items.push({ [name]: id, error: 'not tried' })
        break
      }
    }
  }
  if (asJson === true) io.out(JSON.stringify({ items }))
  if (codes.size > 0) throw new CommandFailed(codes.size === 1 ? [...codes][0] as number : EXIT.failed, '')
}
