import t from 'tap'
import { didYouMean, nearNames } from '../../core/near-names.ts'

const SERVICES = ['CcpEchoSvc', 'OptionPricer', 'OptionPricer2', 'Risk']

for (const [wrong, meant] of [
  ['CcpEchoSvx', ['CcpEchoSvc']], ['ccpehcosvc', ['CcpEchoSvc']], ['CcpEcho', ['CcpEchoSvc']], ['OptionPricer22', ['OptionPricer', 'OptionPricer2']], ['Rsik', ['Risk']], ['risks', ['Risk']],
  ['Unlike', []], ['x', []], ['', []], ['R'.repeat(300), []],
] as const) {
  t.test(`near names: for "${wrong.slice(0, 20)}" ${meant.length === 0 ? 'nothing is near' : meant.join(', ')}`, async t => { t.same(nearNames(wrong, SERVICES), meant) })
}

t.test('near names: they are asked for in words', async t => {
  t.same([[], ['A'], ['A', 'B'], ['A', 'B', 'C']].map(didYouMean), ['', '; did you mean A?', '; did you mean A or B?', '; did you mean A, B or C?'])
})
