import { loadCustomBroker } from '../broker/worker/custom-loader.ts'
import { loadService } from '../service-host/service-loader.ts'
import { loadWsdl, operationsOf } from '../wsdl/document.ts'

/** A custom broker's class, by the broker worker's own loader. */
export interface CheckedBroker {
  readonly kind: 'broker'
  /** Absolute path. */
  readonly module: string
}

/** A service, by the service host's. */
export interface CheckedService {
  readonly kind: 'service'
  /** Absolute path. */
  readonly module: string
  readonly type: string
  readonly documents: Readonly<Record<string, string>>
  readonly wsdlFile: string
  readonly contract: string
}

export type CheckedModule = CheckedService | CheckedBroker

// One question by the channel of the parent, one answer, and the end: timers that the module may have started are not waited for.
process.once('message', (asked: CheckedModule) => {
  load(asked).then(() => ({}), (error: unknown) => ({ why: error instanceof Error ? error.message : String(error) }))
    .then(answer => process.send?.(answer, () => process.exit()))
})

async function load (asked: CheckedModule): Promise<unknown> {
  if (asked.kind === 'broker') return await loadCustomBroker(asked.module)
  const wsdl = loadWsdl(asked.documents, asked.wsdlFile)
  return await loadService(asked.module, wsdl, operationsOf(wsdl, asked.contract), asked.type)
}
