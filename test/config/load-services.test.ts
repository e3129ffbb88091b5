import t from 'tap'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findServiceFiles, loadServiceFile } from '../../config/load-services.ts'

const config = (service: string, host = ''): string => `<configuration><microsoft.Hpc.Session.ServiceRegistration>${service}${host}</microsoft.Hpc.Session.ServiceRegistration></configuration>`
const wsdl = (inside = ''): string => `<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:x="http://www.w3.org/2001/XMLSchema">${inside}</w:definitions>`
const xsd = (inside = ''): string => `<schema xmlns="http://www.w3.org/2001/XMLSchema">${inside}</schema>`

t.test('load: the WSDL beside the file comes with every document that it imports', async t => {
  const dir = t.testdir({
    'Pricer_1.0.config': config('<service assembly="lib/pricer.mjs"/>'),
    'Pricer.wsdl': wsdl('<w:import location="xsd/sub.wsdl"/><w:types><x:schema><x:import namespace="u" schemaLocation="xsd/a.xsd"/></x:schema></w:types>'),
    xsd: { 'sub.wsdl': wsdl(), 'a.xsd': xsd('<include schemaLocation="with%20blank.xsd"/><import schemaLocation="../Pricer.wsdl"/>'), 'with blank.xsd': xsd('<redefine schemaLocation="a.xsd"/>') }
  })
  const warnings: string[] = []
  const file = join(dir, 'Pricer_1.0.config')
  const loaded = await loadServiceFile(file, { warn: warning => warnings.push(warning), now: () => 0 })
  t.match(loaded, { name: 'Pricer', version: '1.0', file, wsdlFile: join(dir, 'Pricer.wsdl'), addedAt: '1970-01-01T00:00:00.000Z' })
  t.equal(loaded.config, config('<service assembly="lib/pricer.mjs"/>'))
  t.strictSame(Object.keys(loaded.documents).sort(), ['Pricer.wsdl', 'xsd/a.xsd', 'xsd/sub.wsdl', 'xsd/with blank.xsd'].map(name => join(dir, name)))
  t.equal(loaded.documents[join(dir, 'xsd/sub.wsdl')], wsdl())
  t.strictSame(warnings, [])
})

t.test('load: the WSDL is found by attribute first, then beside the assembly', async t => {
  const dir = t.testdir({
    'A.config': config('<service assembly="lib/a.mjs" wsdl="other/name.wsdl"/>'),
    'A.wsdl': wsdl(),
    'B.config': config('<service assembly="lib/b.mjs"/>'),
    other: { 'name.wsdl': wsdl() },
    lib: { 'b.wsdl': wsdl() }
  })
  t.equal((await loadServiceFile(join(dir, 'A.config'))).wsdlFile, join(dir, 'other/name.wsdl'))
  t.equal((await loadServiceFile(join(dir, 'B.config'))).wsdlFile, join(dir, 'lib/b.wsdl'))
})

t.test('load: an executable may do without a WSDL, a module may not', async t => {
  const dir = t.testdir({
    'Exe.config': config('<service/>', '<host hostType="Customize" exeFileName="python3"/>'),
    'Mod.config': config('<service assembly="m.mjs"/>'),
    'Gone.config': config('<service assembly="m.mjs" wsdl="gone.wsdl"/>')
  })
  t.match(await loadServiceFile(join(dir, 'Exe.config')), { wsdlFile: undefined, documents: {} })
  await t.rejects(loadServiceFile(join(dir, 'Mod.config')), { fault: 'ConfigFile_Invalid', message: /no WSDL: looked for .*Mod\.wsdl.*m\.wsdl/ })
  await t.rejects(loadServiceFile(join(dir, 'Gone.config')), { fault: 'ConfigFile_Invalid', message: /gone\.wsdl, which is not there/ })
})

t.test('load: documents that are missing, broken or have a DTD are refused by name; those on the web are warned about', async t => {
  const dir = t.testdir({
    'A.config': config('<service assembly="a.mjs"/>'),
    'A.wsdl': wsdl('<w:import location="gone.wsdl"/>'),
    'B.config': config('<service assembly="b.mjs"/>'),
    'B.wsdl': '<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/">',
    'C.config': config('<service assembly="c.mjs"/>'),
    'C.wsdl': `<!DOCTYPE x [<!ENTITY e "e">]>${wsdl()}`,
    'D.config': config('<service assembly="d.mjs"/>'),
    'D.wsdl': wsdl('<x:schema><x:import schemaLocation="http://example.org/far.xsd"/></x:schema>')
  })
  await t.rejects(loadServiceFile(join(dir, 'A.config')), { fault: 'ConfigFile_Invalid', message: /A\.config: \S*gone\.wsdl does not exist/ })
  await t.rejects(loadServiceFile(join(dir, 'B.config')), { fault: 'ConfigFile_Invalid', message: /B\.wsdl is no well-formed XML/ })
  await t.rejects(loadServiceFile(join(dir, 'C.config')), { fault: 'ConfigFile_Invalid', message: /C\.wsdl has a document type declaration/ })
  const warnings: string[] = []
  await loadServiceFile(join(dir, 'D.config'), { warn: warning => warnings.push(warning) })
  t.match(warnings, [/D\.wsdl imports http:\/\/example\.org\/far\.xsd: not on disk, not followed/])
})

t.test('load: files of Windows tools are read by their byte order mark, other bytes are refused', async t => {
  const dir = t.testdir({})
  mkdirSync(dir, { recursive: true })
  const text = config('<service contract="größer"/>', '<host hostType="Customize" exeFileName="x"/>')
  writeFileSync(join(dir, 'U16.config'), Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')]))
  writeFileSync(join(dir, 'Declared.config'), Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(`<?xml version="1.0" encoding="utf-16"?>\r\n${text}\r\n`, 'utf16le')]))
  writeFileSync(join(dir, 'U8.config'), Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)]))
  writeFileSync(join(dir, 'Bad.config'), Buffer.from([0x3c, 0xff, 0xff]))
  t.match((await loadServiceFile(join(dir, 'U16.config'))).config, /größer/)
  t.match((await loadServiceFile(join(dir, 'U8.config'))).config, /größer/)
  t.match((await loadServiceFile(join(dir, 'Declared.config'))).config, /größer/, 'as Visual Studio saves it')
  await t.rejects(loadServiceFile(join(dir, 'Bad.config')), { fault: 'ConfigFile_Invalid', message: /is not utf-8/ })
  await t.rejects(loadServiceFile(join(dir, 'Gone.config')), { fault: 'ConfigFile_Invalid', message: /Gone\.config: it does not exist$/ })
  await t.rejects(loadServiceFile(join(dir, 'Gone.xml')), { fault: 'ConfigFile_Invalid', message: /ends in \.config/ })
})

t.test('load: all registration files below a folder are found', async t => {
  const dir = t.testdir({ b: { 'B.config': '', deep: { 'C_1.0.config': '' } }, 'A.CONFIG': '', 'x.txt': '', node_modules: { 'no.config': '' }, '.git': { 'no.config': '' } })
  t.strictSame(await findServiceFiles(dir), ['A.CONFIG', 'b/B.config', 'b/deep/C_1.0.config'].map(name => join(dir, name)))
})

t.test('load: what is no file is not read: a device would have no end, and a pipe no beginning', async t => {
  const dir = t.testdir({
    'A.config': config('<service assembly="a.mjs"/>'),
    'A.wsdl': wsdl('<w:import location="/dev/zero"/>'),
    'B.config': config('<service assembly="b.mjs"/>'),
    'B.wsdl': wsdl('<w:types><x:schema><x:import namespace="u" schemaLocation="pipe.xsd"/></x:schema></w:types>'),
    'C.config': config('<service assembly="c.mjs"/>'),
    'C.wsdl': wsdl('<w:import location="folder"/>'),
    folder: {}
  })
  execFileSync('mkfifo', [join(dir, 'pipe.xsd')])
  for (const [name, what] of [['A', '/dev/zero'], ['B', 'pipe.xsd'], ['C', 'folder']] as const) {
    await t.rejects(loadServiceFile(join(dir, `${name}.config`)), { fault: 'ConfigFile_Invalid', message: new RegExp(`${what} is no file`) })
  }
})
