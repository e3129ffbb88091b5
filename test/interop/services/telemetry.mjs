// A schema as XmlSerializer likes it: attributes, unqualified elements, choice, all, lists. `source` chooses the answer.
const TYPES = 'http://contoso.com/telemetry/types'

export default {
  Send ({ batch, sample }) {
    const { id } = batch?.$attributes ?? {}
    const seen = { $attributes: { at: '2026-02-28T23:59:59.1234567Z', lang: 'de' }, level: (sample ?? []).map((one, i) => i % 10) }
    if (batch?.source === 'error') return { SendResult: { ...seen, error: JSON.stringify({ batch, sample }, (key, value) => typeof value === 'bigint' ? String(value) : value) } }
    if (batch?.source === 'big') return { SendResult: { $type: `{${TYPES}}BigReport`, $attributes: { size: 5 }, ok: id, level: [], more: 'yes' } }
    return { SendResult: { ...seen, ok: id, box: { b: 2, a: 1 } } }
  },
  Flags: ({ f }) => ({ FlagsResult: f })
}
