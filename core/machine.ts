type Table = { readonly [state: string]: { readonly [event: string]: string } }
type EventOf<T> = { [S in keyof T]: keyof T[S] & string }[keyof T]

/** Checks, as it compiles, that every cell names a state of the same table. */
export const states = <const T extends { [S in keyof T]: Record<string, keyof T> }> (table: T): T => table

export interface Machine<T> {
  readonly state: keyof T & string
  /** Moves and says true, or stays and says false: a late event (a response after a purge) is ordinary, not a throw. */
  fire (event: EventOf<T>): boolean
}

/** A life as a table: rows are states, cells say where an event leads. `moved` is the one place that logs, counts and tells. */
export function machine<T extends Table> (table: T, start: keyof T & string, moved: (from: keyof T & string, event: EventOf<T>, to: keyof T & string) => void = () => {}): Machine<T> {
  let state: keyof T & string = start
  return {
    get state () { return state },
    fire (event) {
      const from = state
      const to = table[from]?.[event] as (keyof T & string) | undefined
      if (to === undefined) return false
      state = to
      moved(from, event, to)
      return true
    }
  }
}
