import { escapeAttribute } from '../xml/characters.ts'
import type { Scope } from './envelope.ts'

/** One declaration as it stands in a start tag, with the blank before it. */
export const declaration = (prefix: string, uri: string): string => prefix === '' ? ` xmlns="${escapeAttribute(uri)}"` : ` xmlns:${prefix}="${escapeAttribute(uri)}"`

/** A prefix like `wish` that is free in the scope or means this namespace there already, so that declaring it hides no other. */
export function freePrefix (wish: string, namespace: string, scope: Scope): string {
  for (let n = 0; ; n++) {
    const prefix = n === 0 ? wish : `${wish}${n}`
    if (scope.every(([known, uri]) => known !== prefix || uri === namespace)) return prefix
  }
}
