import { SoapFault } from 'soa-broker/service'

/** `note` is one-way, so what it was given is seen in the next `stock`. */
const stock = [{ sku: 'bolt', quantity: 7, price: '0.10' }, { quantity: 0 }]
let level = 'LOW'

/** An rpc/literal contract: results by the names of the reply's parts. */
export default {
  add: ({ a, b }) => ({ return: a + b }),

  place ({ order, rush }) {
    const lines = (order.lines ?? []).filter(line => line !== null)
    if (lines.length === 0) throw new SoapFault({ code: 'Sender', reason: `order ${order.id} is empty`, fault: 'BadOrder', detail: { code: 7, message: order.customer } })
    const cents = lines.reduce((sum, { quantity, price = '0' }) => sum + quantity * Math.round(Number(price) * 100), rush ? 500 : 0)
    return { receipt: { orderId: order.id, at: '2026-11-30T10:11:12.1234567Z', remark: `for ${order.customer}: ${lines.map(({ sku }) => sku).join(' & ')}` }, total: (cents / 100).toFixed(2) }
  },

  sum: ({ values }) => ({ return: (values.item ?? []).reduce((sum, one) => sum + BigInt(one), 0n) }),

  stock: () => ({ return: { $attributes: { level }, items: stock } }),

  touch ({ key }) {
    if (key === 'nothing') throw new Error('there is nothing to touch')
  },

  grow ({ shape, by }) {
    const key = 'radius' in shape ? 'radius' : 'side'
    return { return: { ...shape, [key]: shape[key] * by } }
  },

  note (args) { level = args.level }
}
