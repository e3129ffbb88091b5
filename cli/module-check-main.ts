import { loadService } from '../service-host/service-loader.ts'
import { loadWsdl, operationsOf } from '../wsdl/document.ts'

export interface CheckedModule {
  /** Absolute path. */
  readonly module: string
  readonly type: string
  readonly documents: Readonly<Record<string, string>>
  readonly wsdlFile: string
  readonly contract: string
}

// One question by the channel of the parent, one answer, and the end: timers that the module may have started are not waited for.
process.once('message', (asked: CheckedModule) => {
  const wsdl = loadWsdl(asked.documents, asked.wsdlFile)
  loadService(asked.module, wsdl, operationsOf(wsdl, asked.contract), asked.type)
    .then(() => ({}), (error: unknown) => ({ why: error instanceof Error ? error.message : String(error) }))
    .then(answer => process.send?.(answer, () => process.exit()))
})
