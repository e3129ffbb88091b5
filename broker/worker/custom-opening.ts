import { SoaError } from '../../core/errors.ts'
import type { ServiceRegistration } from '../../config/service-registration.ts'
import type { Settings } from '../../config/settings.ts'
import { loadCustomBroker } from './custom-loader.ts'
import type { CustomNeeds } from './custom-setup.ts'
import { HookWatch } from './hook-watch.ts'

interface Opening { sessionId: string, settings: Settings, lastWordsFile: string }

/** The custom broker that a registration names, ready to be given to its session. Undefined: none is named. */
export async function openCustomBroker ({ customBroker, file }: ServiceRegistration, { sessionId, settings, lastWordsFile }: Opening): Promise<CustomNeeds | undefined> {
  if (customBroker === undefined) return undefined
  if (customBroker.executive !== '') throw new SoaError('Broker_InvalidConfiguration', { setting: 'customBroker/@executive', why: `${file}: programs are not served` })
  const { name, broker } = await loadCustomBroker(customBroker.class)
  const watch = new HookWatch({ sessionId, name, timeoutMs: settings.hookTimeoutMs, lastWordsFile })
  return { name, broker, run: (hook, call) => watch.run(hook, call), close: () => watch.close() }
}
