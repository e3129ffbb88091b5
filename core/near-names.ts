/** Names that somebody may have meant by `wrong`, nearest first, at most `most`: case apart, a third of the letters may be other ones, lacking, too many or swapped with their neighbour. */
export function nearNames (wrong: string, names: Iterable<string>, most = 3): string[] {
  const from = wrong.toLowerCase()
  if (from.length > LONGEST) return []
  const near: Array<{ name: string, far: number }> = []
  for (const name of names) {
    const to = name.toLowerCase()
    if (to.length > LONGEST) continue
    const limit = Math.max(1, Math.floor(Math.max(from.length, to.length) / 3))
    // What begins with it, or is its beginning, was cut short or has a word too many.
    const far = from.length >= 3 && to.length >= 3 && (to.startsWith(from) || from.startsWith(to)) ? 1 : Math.abs(from.length - to.length) > limit ? Infinity : distance(from, to)
    if (far <= limit) near.push({ name, far })
  }
  return near.sort((a, b) => a.far - b.far || (a.name < b.name ? -1 : 1)).slice(0, most).map(({ name }) => name)
}

const LONGEST = 255

/** `; did you mean A, B or C?`, to stand behind a refusal; empty: nothing is near. */
export function didYouMean (names: readonly string[]): string {
  return names.length === 0 ? '' : `; did you mean ${names.length === 1 ? '' : `${names.slice(0, -1).join(', ')} or `}${names.at(-1) ?? ''}?`
}

/** Letters to change, add, leave out or swap with their neighbour (optimal string alignment). */
function distance (a: string, b: string): number {
  let [before, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      let least = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, (last[j - 1] as number) + (isSame ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, (before[j - 2] as number) + 1)
      row.push(least)
    }
    [before, last] = [last, row]
  }
  return last[b.length] as number
}
