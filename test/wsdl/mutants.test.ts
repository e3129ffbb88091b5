/** Valid messages, each spoiled in one place by chance that is the same every time: we and libxml2 have to agree on what is still valid. */
import t from 'tap'
import { isSoaError } from '../../core/errors.ts'
import { qname, XSI } from '../../wire/xml/events.ts'
import { XmlWriter } from '../../wire/xml/text-writer.ts'
import { readTree, type XmlNode } from '../../wire/xml/tree.ts'
import { readBody } from '../../wsdl/schema/reader.ts'
import { cases, judge, load } from './cases.ts'

const PER_WSDL = Number(process.env.MUTANTS ?? 400)

interface Node { uri: string, local: string, text: string, attributes: Array<[uri: string, local: string, value: string]>, type: string | undefined, children: Node[] }

function copy (node: XmlNode): Node {
  const type = node.qname(`{${XSI}}type`)
  const attributes = [...node.attributes].filter(([name]) => name !== `{${XSI}}type`).map(([name, value]): [string, string, string] => name.startsWith('{') ? [name.slice(1, name.indexOf('}')), name.slice(name.indexOf('}') + 1), value] : ['', name, value])
  return { uri: node.uri, local: node.local, text: node.children.length > 0 ? '' : node.text, attributes, type, children: node.children.map(copy) }
}

function write (node: Node, out = new XmlWriter()): XmlWriter {
  out.start(node.uri, node.local)
  if (node.type !== undefined) out.attribute(XSI, 'type', out.qname(node.type))
  for (const [uri, local, value] of node.attributes) out.attribute(uri, local, value)
  out.text(node.text)
  for (const child of node.children) write(child, out)
  return out.end()
}

const flat = (node: Node): Node[] => [node, ...node.children.flatMap(flat)]

/** mulberry32 */
function chance (seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let r = Math.imul(state ^ (state >>> 15), state | 1)
    r ^= r + Math.imul(r ^ (r >>> 7), r | 61)
    return ((r ^ (r >>> 14)) >>> 0) % below
  }
}

const TEXTS = ['', ' ', 'x', '1', '-1', '1.5', 'true', '99999999999', '2026-01-01T00:00:00Z', 'New', 'AP8=', 'P1D', '\n 1 \n', '11111111-2222-3333-4444-555555555555']

/** Spoils the tree in place; says how. */
function spoil (root: Node, pick: (below: number) => number, types: readonly string[]): string {
  const nodes = flat(root)
  const node = nodes[1 + pick(nodes.length - 1)] ?? root
  const parent = nodes.find(n => n.children.includes(node)) ?? root
  const at = parent.children.indexOf(node)
  const [how, act] = ([
    ['delete', () => { parent.children.splice(at, 1) }],
    ['double', () => { parent.children.splice(at, 0, structuredClone(node)) }],
    ['swap', () => { const other = pick(parent.children.length || 1); [parent.children[at], parent.children[other]] = [parent.children[other] as Node, parent.children[at] as Node] }],
    ['rename', () => { node.local = nodes[pick(nodes.length)]?.local ?? 'x' }],
    ['namespace', () => { node.uri = ['', 'urn:evil', nodes[pick(nodes.length)]?.uri ?? ''][pick(3)] as string }],
    ['text', () => { node.text = TEXTS[pick(TEXTS.length)] as string }],
    ['nil', () => { node.attributes.push([XSI, 'nil', 'true']); if (pick(2) === 0) { node.children = []; node.text = '' } }],
    ['type', () => { node.type = types[pick(types.length)] }],
    ['attribute', () => { node.attributes.push(['', ['x', 'id', 'unit', 'code'][pick(4)] as string, TEXTS[pick(TEXTS.length)] as string]) }],
    ['no attribute', () => { node.attributes.splice(pick(node.attributes.length || 1), 1) }]
  ] as const)[pick(10)] as readonly [string, () => void]
  if (parent.children.length > 0 || how === 'text') act()
  return how
}

for (const name of ['calc', 'orders', 'shapes', 'three', 'telemetry']) {
  t.test(`mutants of ${name}: what libxml2 takes, we take; what it refuses, we refuse`, async t => {
    const xsd = judge(name)
    t.teardown(() => xsd.close())
    const { schema, operations } = load(name, 'split')
    const seeds = cases().filter(c => c.wsdl === name).map(c => c.messages[0]?.body as string)
    const pick = chance(20_261_130)
    const types = [...schema.elementNames, qname('urn:none', 'None'), ...operations.map(o => o.outputElement ?? '')]
    const wrong: string[] = []
    const kept: string[] = []
    let valid = 0
    for (let i = 0; i < PER_WSDL; i++) {
      const root = copy(readTree(seeds[i % seeds.length] as string)[0] as XmlNode)
      const how = spoil(root, pick, types)
      // One attribute twice is no XML, and no matter of the schema.
      if (flat(root).some(n => new Set(n.attributes.map(([u, l]) => qname(u, l))).size < n.attributes.length)) continue
      const body = String(write(root))
      const judged = xsd.check(body)
      let ours: string | undefined
      try {
        readBody(schema, body, [])
      } catch (error) {
        if (!isSoaError(error, 'badBody')) throw error
        ours = error.message
      }
      if (judged === undefined) valid++
      if (judged === undefined && ours !== undefined) wrong.push(`${how}: ${ours}: ${body}`)
      // Blanks where nothing may be, as a pretty printer puts them, are let pass.
      const isBlank = /element is 'nilled'|content type is empty/.test(judged ?? '')
      if (judged !== undefined && ours === undefined && !isBlank) kept.push(`${how}: ${judged}: ${body}`)
    }
    t.ok(valid > PER_WSDL / 20 && valid < PER_WSDL * 0.9, `${valid} of ${PER_WSDL} are valid, so that the comparison means something`)
    t.same(wrong, [], 'refused without need')
    t.same(kept, [], 'accepted, but not valid')
  })
}
