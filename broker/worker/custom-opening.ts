import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import type { ServiceRegistration } from '../../config/service-registration.ts'
import { ofSession, type Settings } from '../../config/settings.ts'
import { loadCustomBroker } from './custom-loader.ts'
import { openProgram } from './custom-program.ts'
import type { CustomNeeds } from './custom-setup.ts'
import { HookWatch } from './hook-watch.ts'

interface Opening {
  session: { sessionId: string, durable: boolean }
  settings: Settings
  lastWordsFile: string
  /** Of this process. */
  env: Readonly<Record<string, string | undefined>>
  clock: Clock
  log: Logger
}

/** The custom broker that a registration names, ready to be given to its session. Undefined: none is named. */
export async function openCustomBroker (registration: ServiceRegistration, { session: { sessionId, durable }, settings, lastWordsFile, env, clock, log }: Opening): Promise<CustomNeeds | undefined> {
  const { customBroker, name: service } = registration
  if (customBroker === undefined) return undefined
  if (customBroker.executive !== '') return await openProgram({ registration, session: { id: sessionId, service, isDurable: durable, settings: ofSession(settings) }, env, clock, log: log.child({ sessionId }) })
  const { name, broker, strangers } = await loadCustomBroker(customBroker.class)
  if (strangers.length > 0) log.warn({ sessionId, class: name, methods: strangers }, 'custom broker: methods with names near a hook\'s that are never called')
  const watch = new HookWatch({ sessionId, name, timeoutMs: settings.hookTimeoutMs, lastWordsFile })
  return { name, broker, run: (hook, call) => watch.run(hook, call), close: () => watch.close() }
}
