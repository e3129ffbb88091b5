import { readFile } from 'node:fs/promises'
import { register } from 'node:module'

/**
 * `specifier` (`soa-broker/service`, `soa-broker/broker`) in a user's module means this very package, wherever the module lies: it needs no installation of its own.
 * Hooks cost a thread and some 30 ms, so only a module that speaks of the package gets them.
 */
export async function knowOwnPackage (file: string, specifier: string, own: URL): Promise<void> {
  const text = await readFile(file, 'utf8').catch(() => '') // a file that is not there is the import's to tell of
  if (!text.includes('soa-broker/')) return
  const hooks = `export async function resolve (specifier, context, next) {
    return specifier === ${JSON.stringify(specifier)} ? { url: ${JSON.stringify(own.href)}, shortCircuit: true } : next(specifier, context)
  }`
  register(`data:text/javascript,${encodeURIComponent(hooks)}`)
}
