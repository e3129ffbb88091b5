/** The end of a stream, for the one who asks why a host ended. */
const TAIL_BYTES = 4096
const TAIL_LINES = 20

/** Keeps the last 4 KiB of what it is given. */
export class Tail {
  readonly #chunks: Buffer[] = []
  #bytes = 0

  keep (chunk: Buffer): void {
    // Copied: a slice would hold the whole chunk in memory.
    this.#chunks.push(Buffer.from(chunk.subarray(-TAIL_BYTES)))
    this.#bytes += Math.min(chunk.length, TAIL_BYTES)
    while (this.#bytes - (this.#chunks[0]?.length ?? 0) >= TAIL_BYTES) this.#bytes -= this.#chunks.shift()?.length ?? 0
  }

  /** Its last 20 lines, as far as they are kept. */
  get text (): string {
    const lines = Buffer.concat(this.#chunks).subarray(-TAIL_BYTES).toString('utf8').replace(/^\uFFFD+/, '').split('\n')
    return lines.slice(-TAIL_LINES - (lines.at(-1) === '' ? 1 : 0)).join('\n')
  }
}
