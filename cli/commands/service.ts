import { basename } from 'node:path'
import type { Command } from 'commander'
import type { LoadedService } from '../../config/load-services.ts'
import type { RegistrationCheck } from '../check-registration.ts'
import { CommandFailed, EXIT } from '../exit-codes.ts'
import { HeadApi } from '../head-api.ts'
import { print, table, type Io } from '../io.ts'
import { addSettings } from '../options.ts'

interface Service { name: string, version?: string | null, file: string, wsdlFile?: string | null, addedAt: string }
interface Added extends Service { warnings: readonly string[] }
interface Target { head?: string, json?: boolean }

export function serviceCommands (program: Command, io: Io): void {
  const service = program.command('service').description('register, check and list services')
  const api = (options: Target): HeadApi => new HeadApi(options.head ?? io.env.SOA_HEAD ?? 'http://127.0.0.1:8080', io.signal)

  addSettings(service.command('add <files...>').description('register services by HPC Pack\'s registration files: NAME.config or NAME_VERSION.config, with the WSDL beside it'), 'client')
    .option('--json', 'one JSON document')
    .addHelpText('after', '\nExamples:\n  soa service add examples/services/CcpEchoSvc/CcpEchoSvc.config\n  soa service add /srv/soa/*.config')
    .action(async (files: string[], options: Target) => {
      const { checkService } = await import('../../broker/check-service.ts')
      const { loadServiceFile } = await import('../../config/load-services.ts')
      const { filesHere, warningsOf } = await import('../files-here.ts')
      const { putService } = await import('../put-service.ts')
      const head = api(options)
      // All files are read and checked before the first is sent: a mistake in the third leaves nothing half done.
      const loaded: Array<{ service: LoadedService, warnings: string[] }> = []
      for (const file of files) {
        const warnings: string[] = []
        const service = await loadServiceFile(file, { env: io.env, warn: warning => warnings.push(warning) })
        const { registration, contractWarnings } = checkService(service, io.env)
        // No reason to refuse it: a registration may be made on a machine that is neither head nor node.
        warnings.push(...contractWarnings, ...warningsOf(filesHere(registration, io)))
        for (const warning of new Set(warnings)) io.err(`${file}: warning: ${warning}`)
        loaded.push({ service, warnings: [...new Set(warnings)] })
      }
      const added: Added[] = []
      for (const { service, warnings } of loaded) {
        await putService(head, service)
        added.push({ ...summary(service), warnings })
      }
      print(io, options.json, added.length === 1 ? added[0] : { items: added }, () => added.map(one => `${nameOf(one)} is registered (${one.file})`))
    })

  service.command('check <files...>').description('what a head and a node would say to registration files, without either: file, WSDL, contract, module, and what has no effect')
    .option('--json', 'one JSON document')
    .option('--no-module', 'do not load the service\'s module (loading it runs it)')
    .addHelpText('after', `
Examples:
  soa service check examples/services/OptionPricer/OptionPricer.config
  soa service check /srv/soa/*.config --no-module --json

Exit codes: 0 all can be added (perhaps with warnings), 5 something is not supported here, 1 something is wrong.`)
    .action(async (files: string[], options: { json?: boolean, module: boolean }) => {
      const { checkRegistration, exitCodeOf, linesOf } = await import('../check-registration.ts')
      const checks: RegistrationCheck[] = []
      for (const file of files) checks.push(await checkRegistration(file, io, { loadsModule: options.module }))
      print(io, options.json, checks.length === 1 ? checks[0] : { items: checks }, () => checks.flatMap(linesOf))
      const code = exitCodeOf(checks)
      if (code !== EXIT.ok) throw new CommandFailed(code, '')
    })

  service.command('types <file>').description('print a contract as TypeScript, for BrokerClient<…>: of a registration file (NAME.config) or a WSDL')
    .option('--json', 'one JSON document: file, wsdlFile, typescript')
    .addHelpText('after', '\nExample:\n  soa service types examples/services/OptionPricer/OptionPricer.config > option-pricer.ts')
    .action(async (file: string, options: { json?: boolean }) => {
      const { loadServiceFile, loadWsdlFile } = await import('../../config/load-services.ts')
      const { loadWsdl } = await import('../../wsdl/document.ts')
      const { typescriptOf } = await import('../../wsdl/typescript.ts')
      const warn = (warning: string): void => io.err(`${file}: ${warning}`)
      const { wsdlFile, documents } = /\.config$/i.test(file) ? await loadServiceFile(file, { env: io.env, warn }) : await loadWsdlFile(file, warn)
      if (wsdlFile === undefined) throw new CommandFailed(EXIT.notFound, `${file} has no WSDL`)
      const typescript = typescriptOf(loadWsdl(documents, wsdlFile), basename(wsdlFile)).trimEnd()
      print(io, options.json, { file, wsdlFile, typescript }, () => [typescript])
    })

  addSettings(service.command('list').description('registered services'), 'client')
    .option('--json', 'one JSON document')
    .addHelpText('after', '\nExample:\n  soa service list')
    .action(async (options: Target) => {
      const found = await api(options).call('GET', 'services') as { items: Service[] }
      print(io, options.json, found, () => table(['SERVICE', 'VERSION', 'FILE', 'ADDED'], found.items.map(one => [one.name, one.version ?? '', one.file, one.addedAt])))
    })
}

const nameOf = ({ name, version }: Service): string => version === undefined || version === null ? name : `${name} ${version}`
const summary = ({ name, version, file, wsdlFile, addedAt }: { name: string, version?: string | undefined, file: string, wsdlFile?: string | undefined, addedAt: string }): Service =>
  ({ name, ...(version === undefined ? {} : { version }), file, ...(wsdlFile === undefined ? {} : { wsdlFile }), addedAt })
