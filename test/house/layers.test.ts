import t from 'tap'
import { cycles, importsOf, readImports, roomOf, sources, wrongWith } from './imports.ts'

const files = sources()
const imports = files.flatMap(readImports)

t.test('layers: no import points up or into another room', async t => {
  t.ok(files.length > 50 && imports.length > files.length, `${files.length} files with ${imports.length} imports were read`)
  t.strictSame(imports.flatMap(one => wrongWith(one) === undefined ? [] : [`${one.from} → ${one.to}: ${wrongWith(one)}`]), [])
})

t.test('layers: no file imports itself by way of others', async t => {
  t.strictSame(cycles(imports).map(path => path.join(' → ')), [])
})

t.test('layers: every import leads to a file', async t => {
  const known = new Set(files)
  t.strictSame(imports.filter(({ to }) => to.endsWith('.ts') && !known.has(to)).map(({ from, to }) => `${from} → ${to}`), [])
})

t.test('layers: what must not be is seen', async t => {
  const wrong: Array<[from: string, to: string, says: RegExp | undefined]> = [
    ['core/errors.ts', 'wire/soap/envelope.ts', /lies above/],
    ['transport/channel.ts', 'store/redis.ts', /another room/],
    ['store/redis.ts', 'transport/channel.ts', /another room/],
    ['config/settings.ts', 'wsdl/contracts.ts', /another room/],
    ['broker/head/rest.ts', 'broker/worker/session.ts', /another room/],
    ['node-manager/task.ts', 'broker/head/rest.ts', /another room/],
    ['broker/contract.ts', 'broker/worker/session.ts', /another room/],
    ['client/session.ts', 'cli/io.ts', /lies above/],
    ['cli/main.ts', 'test/cli/helpers.ts', /imports test/],
    ['cli/main.ts', 'examples/options/price-book.ts', /imports examples/],
    ['examples/a.ts', 'bench/b.ts', /imports bench/],
    ['elsewhere/x.ts', 'core/errors.ts', /in no layer/],
    ['broker/head/rest.ts', 'broker/contract.ts', undefined],
    ['broker/head/rest.ts', 'broker/problem.ts', undefined],
    ['node-manager/task.ts', 'broker/problem.ts', /another room/],
    ['node-manager/task.ts', 'broker/view.ts', undefined],
    ['cli/run-head.ts', 'broker/head/main.ts', undefined],
    ['store/redis.ts', 'core/errors.ts', undefined],
    ['test/x.ts', 'examples/y.ts', undefined],
    ['examples/a.ts', 'client/index.ts', undefined]
  ]
  for (const [from, to, says] of wrong) t[says === undefined ? 'equal' : 'match'](wrongWith({ from, to }), says as RegExp, `${from} → ${to}`)
  t.equal(roomOf('broker/head/rest/sessions.ts'), 'broker/head')
  t.strictSame(cycles([{ from: 'a', to: 'b' }, { from: 'b', to: 'c' }, { from: 'c', to: 'b' }, { from: 'a', to: 'c' }]), [['b', 'c', 'b']])
})

t.test('layers: every way to import is read', async t => {
  const text = `
    import a from './a.ts'
    import type { B } from './b.ts'
    import './c.ts'
    export * from '../d.ts'
    type E = import('./e.ts').E
    const f = await import('./f.ts')
    import fs from 'node:fs'
    // import './not.ts'
    const s = "import './neither.ts'"`
  t.strictSame(importsOf('cli/x.ts', text).map(({ to }) => to), ['cli/a.ts', 'cli/b.ts', 'cli/c.ts', 'd.ts', 'cli/e.ts', 'cli/f.ts'])
})
