// An order comes back in its receipt; one whose note is `refuse` is a fault of the contract.
const refused = () => ({ fault: 'OrderFaultFault', message: 'refused', detail: { Code: 7, Reasons: { string: ['too late', null, ''] } } })

export default {
  Place ({ order }) {
    if (order?.Note === 'refuse') throw refused()
    if (order?.Note === 'crash') throw new Error('not for clients')
    return { PlaceResult: { Codes: order?.Tags === null ? null : { int: (order?.Tags?.string ?? []).map((tag, i) => i) }, Number: order?.Id ?? 0n, Order: order } }
  },
  Find: ({ tags, status }) => ({
    FindResult: { Order: (tags?.string ?? []).map((tag, i) => tag === null ? null : { Id: BigInt(i), Note: tag, Status: status, Total: '0.10' }) }
  }),
  Keys: () => ({ KeysResult: { guid: ['00000000-0000-0000-0000-000000000000', '0f0c1f0e-51a4-4b6f-9a0e-2f8a57d9b1aa'] } }),
  Cancel ({ id }) { if (id < 0n) throw refused() }
}
