import { spawnSync, execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { Session } from '../../client/index.ts'
import { Cluster } from '../e2e/cluster.ts'

const PYTHON = '/usr/bin/python3'
const probe = spawnSync(PYTHON, ['-c', 'import zeep; print(zeep.__version__)'], { encoding: 'utf8' })
const skip = probe.status === 0 ? false : `zeep is not installed for ${PYTHON} (Debian: python3-zeep)`

/** zeep knows nothing but the WSDL: it finds port and types there and calls as any plain SOAP client does. */
const PROGRAM = `
import json, sys, zeep
client = zeep.Client(sys.argv[1])
service = client.service
if len(sys.argv) > 2 and sys.argv[2]:
    for svc in client.wsdl.services.values():
        for port in svc.ports.values():
            if type(port.binding).__name__ == sys.argv[2]:
                service = client.bind(svc.name, port.name)
print(json.dumps({'answers': [service.Generate(n) for n in (1, 10, 10000)], 'binding': type(service._binding).__name__}))
`

t.setTimeout(300_000)

t.test('zeep calls a session synchronously, from its ?wsdl alone', { skip }, async t => {
  const cluster = await Cluster.start(t)
  await using session = await Session.create({ service: 'SimpleService', head: cluster.head })
  for (const query of ['wsdl', 'singleWsdl']) {
    for (const binding of ['Soap11Binding', 'Soap12Binding']) {
      await t.test(`${query}, ${binding}`, async t => {
        const { stdout } = await promisify(execFile)(PYTHON, ['-c', PROGRAM, `${session.endpoint}?${query}`, binding], { timeout: 60_000 })
        const { answers, binding: used } = JSON.parse(stdout) as { answers: number[], binding: string }
        t.equal(used, binding)
        t.equal(answers[0], 0, 'the only integer in 0 … 0')
        t.ok(answers.every((n, i) => Number.isInteger(n) && n >= 0 && n < [1, 10, 10_000][i]!), answers.join(', '))
      })
    }
  }
})
