import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { asset } from '../core/assets.ts'
import type { Redis } from './redis.ts'

/** What a script takes and gives: integers come as numbers, strings as Buffers, false as null. */
export type Argument = string | number | Buffer
export type Reply = number | Buffer | null | Reply[]

/**
 * One Lua file of store/lua, sent by its hash and in full only to a Redis that does not know it.
 *
 * A file's head states its promise, KEYS and ARGV. A line `-- include owner.lua` is replaced by that file, which is how
 * all scripts compare the owner's token with the same few lines.
 */
export class Script {
  readonly #text: string
  readonly #sha: string
  /** Redis lets a script that says no-writes write nothing. */
  readonly writes: boolean

  constructor (name: string) {
    const read = (file: string): string => readFileSync(asset(`store/lua/${file}`), 'utf8')
    this.#text = read(`${name}.lua`).replace(/^-- include (\S+)$/gm, (_, file: string) => read(file))
    this.writes = !/^#!lua.*no-writes/.test(this.#text)
    this.#sha = createHash('sha1').update(this.#text).digest('hex')
  }

  async run (redis: Redis, keys: readonly string[], args: readonly Argument[]): Promise<Reply> {
    const rest = [keys.length, ...keys, ...args]
    try {
      return await redis.callBuffer('evalsha', [this.#sha, ...rest]) as Reply
    } catch (error) {
      // Redis was restarted, failed over or told SCRIPT FLUSH. It ran nothing, so sending the text is no second run.
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return await redis.callBuffer('eval', [this.#text, ...rest]) as Reply
    }
  }
}

/** Reads a script when it is first needed, and once. */
export function script (name: string): () => Script {
  let made: Script | undefined
  return () => (made ??= new Script(name))
}

export const text = (reply: Reply | undefined): string => Buffer.isBuffer(reply) ? reply.toString() : reply == null ? '' : String(reply as number)
export const list = (reply: Reply | undefined): Reply[] => Array.isArray(reply) ? reply : []
export const int = (reply: Reply | undefined): number => reply == null ? 0 : Number(Buffer.isBuffer(reply) ? reply.toString() : reply)
