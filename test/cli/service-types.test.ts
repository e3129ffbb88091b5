import t from 'tap'
import { asset } from '../../core/assets.ts'
import { run } from './helpers.ts'

t.test('cli: service types prints the contract of a registration file and of its WSDL alike', async t => {
  const folder = 'examples/services/SimpleService'
  const [ofConfig, ofWsdl] = await Promise.all(['SimpleService.config', 'SimpleService.wsdl'].map(file => run(['service', 'types', asset(`${folder}/${file}`)])))
  t.match(ofConfig, { code: 0, err: '', out: /export interface ISimpleService \{\n {2}Generate: \{\n {4}args: \{/ })
  t.equal(ofWsdl?.out, ofConfig?.out)
})

t.test('cli: service types says which file is not there, and which has no WSDL', async t => {
  t.match(await run(['service', 'types', 'nowhere.wsdl']), { code: 4, err: /^soa: \/\S*nowhere\.wsdl does not exist\n$/ })
  const dir = t.testdir({ 'Exe.config': '<configuration><microsoft.Hpc.Session.ServiceRegistration><service/><host hostType="Customize" exeFileName="x"/></microsoft.Hpc.Session.ServiceRegistration></configuration>' })
  t.match(await run(['service', 'types', `${dir}/Exe.config`]), { code: 4, err: /Exe\.config has no WSDL/ })
})
