import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { Cluster } from './cluster.ts'
import { filesOf, follow } from './pages.ts'

const zeep = spawnSync('/usr/bin/python3', ['-c', 'import zeep'], { stdio: 'ignore' }).status === 0
const curl = existsSync('/usr/bin/curl')
const left = (cluster: Cluster): Promise<string[]> => cluster.keys().then(keys => keys.filter(key => /\{soa:s:/.test(key)))

t.setTimeout(240_000)

t.test('pages of docs/: what they say to do works, and does what they say', async t => {
  const cluster = await Cluster.start(t)

  await t.test('docs/by-hand.md', { skip: curl ? false : 'curl is not on this machine' }, async t => {
    const out = await follow('docs/by-hand.md', cluster.head)
    const answers = out.split('EndRequestsResponse')
    t.match(answers[0], /<\w+:Body[^>]*(\/>|><\/\w+:Body>)/, 'stored: an empty body')
    t.ok(answers.length > 1, 'EndRequests was answered')
    t.match(out, /<EOM>true<\/EOM>/)
    t.match(out, />row 1</)
    t.match(out, /GenerateResult[^>]*>\d+</)
    t.same(await left(cluster), [], 'the last command has closed the session')
  })

  await t.test('docs/first-client.md', { skip: zeep ? false : 'zeep is not installed for /usr/bin/python3 (Debian: python3-zeep)' }, async t => {
    t.same([...filesOf(readFileSync(asset('docs/first-client.md'), 'utf8')).keys()], ['calls.py', 'stored.py', 'first.mjs', 'second.mjs', 'node-soap.mjs'])
    const lines = (await follow('docs/first-client.md', cluster.head)).trim().split('\n')
    const echo = (text: string): string => `${hostname()}:${text}`
    t.same(lines.slice(0, 3), [0, 1, 2].map(n => echo(`call ${n}`)), 'calls of zeep')
    t.same(lines.slice(3, 103).sort(), Array.from({ length: 100 }, (_, n) => `${n} ${echo(`row ${n}`)}`).sort(), 'stored requests of zeep, each response with its user data')
    t.same(lines.slice(103), ['1000 rows, each with its own answer', echo('hello')], 'the client library, and node-soap')
    t.same(await left(cluster), [], 'nothing is left open')
  })

  await t.test('docs/first-service.md', async t => {
    const out = await follow('docs/first-service.md', cluster.head)
    const answers = '{ count: 4, mean: 2.5, deviation: 1.118033988749895 }\n'
    for (const said of ['no value, no mean\n', 'ValueError: no value, no mean\n']) t.equal(out.split(answers + said).length - 1, 1, out)
    t.match(out, /Stats is registered[^]*StatsInPython is registered/)
    t.same(await left(cluster), [])
  })
})
