import { cutText, readableText } from '../../core/cut-text.ts'
import type { TaskInfo } from '../../store/placement-store.ts'

type Exit = NonNullable<TaskInfo['exit']>

/** Characters of a process' last lines in a fault, which every reader gets: 2 KiB. All that is kept of them is in the session's tasks, and the whole in the node's log. */
const MOST_LINES = 2048
const MOST_EXCEPTION = 1000

/** How a service host ended, in one text for whoever waits for its answer: status or signal, and its last lines. */
export function hostFailureText ({ why, stderr }: Exit): string {
  return cutText(`service host: ${why}${lastWords(stderr)}`)
}

/** What a process said last, to stand behind how it ended; of a Python traceback only the exception and where it was raised. Empty: it said nothing. */
export function lastWords (stderr: string, title = 'its last lines on stderr:\n', most = MOST_LINES): string {
  const said = readableText(stderr).trimEnd()
  const { exception, rest } = withoutTraceback(said)
  const lines = rest.trim()
  // The end is kept: there it says why.
  const kept = lines.length <= most ? lines : `… ${lines.slice(-most).replace(/^[\udc00-\udfff]/, '')}`
  return `${exception === undefined ? '' : `; ${cutText(exception, MOST_EXCEPTION)}`}${kept === '' ? '' : `; ${title}${kept}`}`
}

const FRAME = /^ *File "([^"]+)", line (\d+)(?:, in (.+))?$/
const EXCEPTION = /^[A-Za-z_][\w.]*(?:: |$)/

/** `rest`: what was written before and behind the traceback. The last one counts, which is the exception that nobody caught; its beginning may be cut off already. */
function withoutTraceback (text: string): { exception?: string, rest: string } {
  const lines = text.split('\n')
  const last = lines.findLastIndex(line => FRAME.test(line))
  const [, file, line, where] = FRAME.exec(lines[last] ?? '') ?? []
  if (file === undefined) return { rest: text }
  const at = lines.findIndex((line, i) => i > last && !/^\s/.test(line))
  if (at < 0 || !EXCEPTION.test(lines[at] as string)) return { rest: text }
  const first = lines.findIndex(line => line.startsWith('Traceback (most recent call last)'))
  // Without its first line the traceback began above what was kept.
  const before = first >= 0 && first < last ? lines.slice(0, first) : []
  return { exception: `${lines[at]} (${file}, line ${line}${where === undefined ? '' : `, in ${where}`})`, rest: [...before, ...lines.slice(at + 1)].join('\n') }
}
