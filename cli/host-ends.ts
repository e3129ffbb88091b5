import type { SessionView } from '../broker/contract.ts'

/** How service hosts ended, for people: what ended alike, word for word, is told once and counted. */
export function hostEnds ({ tasks = [], lastFailure }: Pick<SessionView, 'lastFailure'> & { tasks?: SessionView['tasks'] }): string[] {
  const alike = new Map<string, { title: string, stderr: string, count: number }>()
  if (lastFailure !== undefined) {
    const { why, node, at, stderr } = lastFailure
    alike.set(told(why, stderr), { title: `last failed host: ${why} on ${node}, ${at}`, stderr, count: 0 })
    // Its task is among the others too, while they are remembered.
    if (!tasks.some(({ id, exit }) => id === lastFailure.taskId && exit !== undefined)) (alike.get(told(why, stderr)) as { count: number }).count = 1
  }
  for (const { id, node, exit, at } of tasks) {
    if (exit === undefined) continue
    const same = alike.get(told(exit.why, exit.stderr))
    if (same !== undefined) { same.count++; continue }
    // It is the last failure, told in other words.
    if (id === lastFailure?.taskId) { (alike.get(told(lastFailure.why, lastFailure.stderr)) as { count: number }).count++; continue }
    alike.set(told(exit.why, exit.stderr), { title: `host of task ${id} on ${node} ended, ${at}: ${exit.why}`, stderr: exit.stderr, count: 1 })
  }
  return [...alike.values()].flatMap(({ title, stderr, count }) => ['', count > 1 ? `${title} (× ${count})` : title, ...indented(stderr)])
}

const told = (why: string, stderr: string): string => `${why}\n${stderr.trim()}`
const indented = (text: string): string[] => text.trim() === '' ? [] : text.trimEnd().split('\n').map(line => `  ${line}`)
