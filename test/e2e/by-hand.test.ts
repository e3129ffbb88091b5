import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { Cluster } from './cluster.ts'

/** The indented blocks of a page, as one script. */
function commandsOf (page: string): string {
  return page.split('\n').filter(line => line.startsWith('    ') || line === '').map(line => line.slice(4)).join('\n')
}

const curl = existsSync('/usr/bin/curl')

t.test('docs/by-hand.md: its commands do what it says', { skip: curl ? false : 'curl is not on this machine' }, async t => {
  t.setTimeout(120_000)
  const cluster = await Cluster.start(t)
  const script = commandsOf(readFileSync(asset('docs/by-hand.md'), 'utf8')).replace('http://127.0.0.1:8080', cluster.head)
  const shell = spawn('/bin/bash', ['-e', '-c', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  shell.stdout.setEncoding('utf8').on('data', (text: string) => { out += text })
  const [code] = await once(shell, 'close') as [number]
  t.equal(code, 0)
  const answers = out.split('EndRequestsResponse')
  t.match(answers[0], /<\w+:Body[^>]*(\/>|><\/\w+:Body>)/, 'stored: an empty body')
  t.ok(answers.length > 1, 'EndRequests was answered')
  t.match(out, /<EOM>true<\/EOM>/)
  t.match(out, />row 1</)
  t.match(out, /GenerateResult[^>]*>\d+</)
  t.same(await cluster.keys().then(keys => keys.filter(key => /\{soa:s:/.test(key))), [], 'the last command has closed the session')
})
