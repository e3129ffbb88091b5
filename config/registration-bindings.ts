import type { Section } from './registration-section.ts'
import { NAMED_BINDINGS } from './registration-table.ts'
import { settingOf, type Settings } from './settings.ts'

/** Files of the field say 2147483647 for "no limit of mine": the largest that there is here, and a warning, instead of a refusal. */
export function atMost (name: 'maxMessageSize' | 'maxDepth', value: number, at: string, warnings: string[]): number {
  const max = settingOf(name).max as number
  if (value > max) warnings.push(`${at}: ${value} is more than ${max}, the most here, which is taken instead`)
  return Math.min(value, max)
}

/**
 * What .NET's bindings say about limits, as far as HPC Pack looks them up by name ([broker-behaviour] 6.9). Front ends and service instances have one
 * limit each here, so the largest of several bindings counts; 0 and less: not said.
 */
export function readBindings (model: Section, warnings: string[]): Partial<Settings> {
  const limits: { maxMessageSize?: number, maxDepth?: number } = {}
  const raise = (name: 'maxMessageSize' | 'maxDepth', section: Section, attribute: string): void => {
    const at = `${section.path}/@${attribute}`
    const said = section.text(attribute).trim()
    if (!section.has(attribute)) return
    const value = /^\d{1,19}$/.test(said) ? Number(said) : section.refuse(`${at}: a whole number, 0 or more, not ${JSON.stringify(said.slice(0, 100))}`)
    if (value === 0) return
    const least = settingOf(name).min as number
    if (value < least) warnings.push(`${at}: ${value} is less than ${least}, the least here, which is taken instead`)
    limits[name] = Math.max(limits[name] ?? 0, least, atMost(name, value, at, warnings))
  }

  const bindings = model.child('bindings')
  for (const kind of bindings.kinds()) {
    for (const binding of kind.children('binding')) {
      const name = binding.text('name')
      if (!NAMED_BINDINGS.has(name)) {
        warnings.push(`${binding.path}: ${name === '' ? 'a binding without a name' : `binding ${name.slice(0, 100)}`} has no effect here: HPC Pack does not look it up either`)
        continue
      }
      raise('maxMessageSize', binding, 'maxReceivedMessageSize')
      const quotas = binding.child('readerQuotas')
      raise('maxDepth', quotas, 'maxDepth')
      quotas.finish()
      // mode="None" asks for what is done here anyway.
      const security = binding.child('security')
      if (security.text('mode').trim() !== 'None') binding.idle('security')
      binding.finish()
    }
    kind.finish()
  }
  for (const other of model.kinds().filter(section => !section.path.endsWith('/bindings'))) warnings.push(`${other.path}: belongs to .NET and has no effect here`)
  return limits
}
