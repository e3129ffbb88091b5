// Echoes what it is given, so that a client sees whether its values came through both ways unchanged.
const pinged = []
const resets = []

export default {
  Add: ({ a, b }) => ({ AddResult: a + b }),
  /** Absent stays absent and nil stays nil. `pinged?` and `resets?` ask for what the operations without a result were told. */
  Echo: ({ text }) => ({ EchoResult: text === 'pinged?' ? pinged.join() : text === 'resets?' ? resets.join() : text }),
  Big: ({ v }) => ({ BigResult: v }),
  Sum: ({ values }) => ({ SumResult: String((values?.int ?? []).reduce((sum, one) => sum + one, 0)) }),
  Prims: ({ p }) => ({ PrimsResult: p }),
  Ping: ({ id }) => { pinged.push(id) },
  Reset: ({ why }) => { resets.push(String(why)) },
  Now: () => ({ NowResult: new Date('2026-02-28T23:59:59.999Z') })
}
