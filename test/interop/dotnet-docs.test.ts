import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { asset, packageRoot } from '../../core/assets.ts'
import { Session, SoapFaultError } from '../../client/index.ts'
import { Cluster } from '../e2e/cluster.ts'
import { dotnet, dotnetEnv, skip } from './dotnet.ts'

t.setTimeout(180_000)

/** scripts/dotnet.mjs has written out the programs of the page, and built them. */
const WRITTEN = asset('test/interop/dotnet/obj/docs')
const page = readFileSync(asset('docs/dotnet.md'), 'utf8')
const commands = [...page.matchAll(/^ {4}(\S.*)$/gm)].map(([, line]) => String(line)).filter(line => !page.split('```').some((block, i) => i % 2 === 1 && block.includes(`    ${line}\n`)))

t.test('docs/dotnet.md: its programs, as they stand there', { skip: skip || (existsSync(join(WRITTEN, 'first-client/bin/Debug/net10.0/first-client.dll')) ? false : 'the programs of docs/dotnet.md are not built') }, async t => {
  const cluster = await Cluster.start(t, { cores: 2 })
  for (const [, file = '', text = ''] of page.matchAll(/^`([\w./-]+)`\n\n```\w*\n([^]*?)^```$/gm)) {
    t.equal(readFileSync(join(WRITTEN, file), 'utf8'), text.replaceAll('/opt/soa-broker', packageRoot), `${file} is what was built`)
  }

  await t.test('first client: a call, and stored requests with their responses', async t => {
    t.ok(commands.includes('dotnet run --project first-client'))
    const { out, err, code } = await dotnet(join(WRITTEN, 'first-client/bin/Debug/net10.0/first-client.dll'), cluster.head)
    t.equal(code, 0, err)
    const [first, ...stored] = out.trim().split('\n')
    t.equal(first, `${hostname()}:hello`)
    t.same(stored.sort(), Array.from({ length: 10 }, (_, row) => `${row}: ${hostname()}:line ${row}`))
    const { items } = await (await fetch(`${cluster.head}/api/v1/sessions`)).json() as { items: unknown[] }
    t.same(items, [], 'it leaves no session')
  })

  await t.test('first service: its WSDL, its registration, a call and its fault', async t => {
    const entry = fileURLToPath(new URL('../../cli/entry.js', import.meta.url))
    const lines = commands.slice(commands.indexOf('cd first-service'))
    t.same(lines.map(line => line.split(' ')[0]), ['cd', 'dotnet', 'dotnet', 'soa', 'soa'])
    // What builds was done beforehand, with everything else.
    const script = lines.filter(line => !line.startsWith('dotnet build')).join('\n').replaceAll('/opt/soa-broker', packageRoot)
    const { stdout } = await promisify(execFile)('/bin/sh', ['-e', '-c', `soa () { "${process.execPath}" "${entry}" "$@"; }\n${script}`], { cwd: WRITTEN, env: { ...dotnetEnv, SOA_HEAD: cluster.head }, timeout: 60_000 })
    t.match(stdout, /FirstService/)
    await using session = await Session.create({ service: 'FirstService', maxUnits: 1, head: cluster.head })
    const client = session.client()
    t.same(await client.call('Instalment', { loan: { Amount: '10000', Months: 12, Rate: 0.06 } }), { InstalmentResult: '860.66' })
    const fault = await client.call('Instalment', { loan: { Amount: '1', Months: 0, Rate: 0.06 } }).catch((error: unknown) => error)
    t.ok(fault instanceof SoapFaultError)
    t.match(fault, { value: { Why: '0 months' } })
    // The session that the page's last command made.
    const { items } = await (await fetch(`${cluster.head}/api/v1/sessions`)).json() as { items: Array<{ sessionId: string }> }
    for (const { sessionId } of items) await fetch(`${cluster.head}/api/v1/sessions/${sessionId}`, { method: 'DELETE' })
  })
})
