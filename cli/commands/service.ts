import { basename } from 'node:path'
import type { Command } from 'commander'
import { CommandFailed, EXIT } from '../exit-codes.ts'
import { HeadApi } from '../head-api.ts'
import { print, table, type Io } from '../io.ts'
import { addSettings } from '../options.ts'

interface Service { name: string, version?: string | null, file: string, wsdlFile?: string | null, addedAt: string }
interface Target { head?: string, json?: boolean }

export function serviceCommands (program: Command, io: Io): void {
  const service = program.command('service').description('register and list services')
  const api = (options: Target): HeadApi => new HeadApi(options.head ?? io.env.SOA_HEAD ?? 'http://127.0.0.1:8080', io.signal)

  addSettings(service.command('add <files...>').description('register services by HPC Pack\'s registration files: NAME.config or NAME_VERSION.config, with the WSDL beside it'), 'client')
    .option('--json', 'one JSON document')
    .addHelpText('after', '\nExamples:\n  soa service add examples/services/CcpEchoSvc/CcpEchoSvc.config\n  soa service add /srv/soa/*.config')
    .action(async (files: string[], options: Target) => {
      const { loadServiceFile } = await import('../../config/load-services.ts')
      const { putService } = await import('../put-service.ts')
      const head = api(options)
      const added: Service[] = []
      // All files are read before the first is sent: a mistake in the third leaves nothing half done.
      const loaded = []
      for (const file of files) loaded.push(await loadServiceFile(file, { env: io.env, warn: warning => io.err(`${file}: ${warning}`) }))
      for (const one of loaded) {
        await putService(head, one)
        added.push(summary(one))
      }
      print(io, options.json, added.length === 1 ? added[0] : { items: added }, () => added.map(one => `${nameOf(one)} is registered (${one.file})`))
    })

  service.command('types <file>').description('print a contract as TypeScript, for BrokerClient<…>: of a registration file (NAME.config) or a WSDL')
    .addHelpText('after', '\nExample:\n  soa service types examples/services/OptionPricer/OptionPricer.config > option-pricer.ts')
    .action(async (file: string) => {
      const { loadServiceFile, loadWsdlFile } = await import('../../config/load-services.ts')
      const { loadWsdl } = await import('../../wsdl/document.ts')
      const { typescriptOf } = await import('../../wsdl/typescript.ts')
      const warn = (warning: string): void => io.err(`${file}: ${warning}`)
      const { wsdlFile, documents } = /\.config$/i.test(file) ? await loadServiceFile(file, { env: io.env, warn }) : await loadWsdlFile(file, warn)
      if (wsdlFile === undefined) throw new CommandFailed(EXIT.notFound, `${file} has no WSDL`)
      io.out(typescriptOf(loadWsdl(documents, wsdlFile), basename(wsdlFile)).trimEnd())
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
