import { readFileSync } from 'node:fs'
import { asset } from '../../core/assets.ts'

/** See vectors/net-tcp/README.md. */
export interface Vector {
  readonly name: string
  readonly description: string
  readonly direction: string
  readonly hex: string
  readonly xml: string | null
  readonly staticDictionary?: boolean
  readonly sessionStrings?: readonly string[]
  readonly readerError?: string
  readonly xmlError?: string
  readonly nbfxHex?: string
  readonly bodyHex?: string
  readonly headers?: string
  readonly encoding?: number
  readonly sessionStringsBefore?: readonly string[]
  readonly newStrings?: readonly string[]
  readonly chunks?: readonly number[]
  readonly serverHex?: string
  readonly steps?: ReadonlyArray<{ readonly direction: string, readonly record: string, readonly value?: string, readonly hex: string, readonly xml?: string, readonly newStrings?: readonly string[] }>
  readonly expect?: ReadonlyArray<Readonly<Record<string, unknown>>>
}

export function vectors (file: 'nbfx-documents' | 'sized-envelopes' | 'unsized-envelopes' | 'conversations' | 'records' | 'http'): Vector[] {
  return readFileSync(asset(`test/wire/vectors/net-tcp/${file}.ndjson`), 'utf8').trimEnd().split('\n').map(line => JSON.parse(line) as Vector)
}

export const bytesOf = (hex: string): Buffer => Buffer.from(hex, 'hex')
