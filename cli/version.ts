import { readFileSync } from 'node:fs'
import { asset } from '../core/assets.ts'

/** Of package.json. */
export const version = (): string => (JSON.parse(readFileSync(asset('package.json'), 'utf8')) as { version: string }).version
