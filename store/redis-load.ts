import type { StoredClient } from './message-store.ts'
import type { SessionKeys } from './redis-keys.ts'
import { int, list, script, text, type Argument, type Reply, type Script } from './redis-script.ts'

const CLIENTS = script('clients')
const LOAD = script('load')
const MESSAGE_IDS = script('message-ids')

/** Clients asked for at once, and uncommitted requests whose heads one script reads. */
const CLIENTS_AT_ONCE = 50
const HEADS_A_STEP = 500

type Run = (of: () => Script, keys: string[], args: Argument[]) => Promise<Reply>

/** All clients of a session, without bodies: message ids are read from heads, and only of requests that no commit covers. */
export async function loadClients (run: Run, keys: SessionKeys): Promise<StoredClient[]> {
  const ids = list(await run(CLIENTS, [keys.meta, keys.clients], [])).map(text).sort()
  const clients: StoredClient[] = []
  for (let from = 0; from < ids.length; from += CLIENTS_AT_ONCE) {
    clients.push(...await Promise.all(ids.slice(from, from + CLIENTS_AT_ONCE).map(id => loadClient(run, keys, id))))
  }
  return clients
}

async function loadClient (run: Run, keys: SessionKeys, clientId: string): Promise<StoredClient> {
  const { client, requests } = keys.of(clientId)
  const [row, seqs] = list(await run(LOAD, [keys.meta, client, requests], []))
  const [displayId, appended, committed, committedSeq, eom, batch, responses, faults] = list(row)
  const outstanding = Float64Array.from(list(seqs), int).sort()
  const uncommitted = [...outstanding.subarray(firstAbove(outstanding, int(committedSeq)))]
  const uncommittedMessageIds: string[] = []
  for (let from = 0; from < uncommitted.length; from += HEADS_A_STEP) {
    const ids = list(await run(MESSAGE_IDS, [keys.meta, requests], uncommitted.slice(from, from + HEADS_A_STEP)))
    uncommittedMessageIds.push(...ids.map(text).filter(id => id !== ''))
  }
  return {
    clientId,
    displayId: displayId == null ? clientId : text(displayId),
    appended: int(appended),
    committed: int(committed),
    committedSeq: int(committedSeq),
    endOfMessages: int(eom) === 1,
    batchId: batch == null ? -1 : int(batch),
    responses: int(responses),
    faults: int(faults),
    outstanding: [...outstanding],
    uncommittedMessageIds
  }
}

function firstAbove (sorted: Float64Array, limit: number): number {
  const at = sorted.findIndex(seq => seq > limit)
  return at === -1 ? sorted.length : at
}
