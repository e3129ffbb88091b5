import { readFileSync } from 'node:fs'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { HOST_EXITS, exitCodeText } from '../../core/host-exits.ts'

t.test('host exits: docs/service-hosts.md has the table, row by row', async t => {
  const rows = readFileSync(asset('docs/service-hosts.md'), 'utf8').split('\n').flatMap(line => /^\| (\d+) \| ([^|]*) \|/.exec(line) ?? []).filter((_, i) => i % 3 !== 0)
  t.same(rows, Object.values(HOST_EXITS).flatMap(({ code, says }) => [String(code), says]))
})

t.test('host exits: a status in words', async t => {
  t.equal(exitCodeText(139, true), 'exit code 139 (128 + SIGSEGV)')
  t.equal(exitCodeText(253, true), `exit code 253 (${HOST_EXITS.hung.says})`)
  t.equal(exitCodeText(253, false), 'exit code 253', 'of a program of another make it may mean anything')
  t.equal(exitCodeText(3, true), 'exit code 3')
})
