import { DEFAULT_HEAD, headUrls, MOST_HEADS } from '../config/head-urls.ts'
import { SoaError } from '../core/errors.ts'
import { HeadsError, type HeadFailure } from './errors.ts'
import { passes } from './retry.ts'

/** The heads of a cluster as a client knows them: those that it was told, in that order, and behind them those that it heard of. The one that answered last is asked first. */
export class Heads {
  readonly #urls: string[]
  #first = 0

  /** @param said URLs with commas between them. @throws `SoaError` with `InvalidArgument` that names the entry. */
  constructor (said = DEFAULT_HEAD) {
    if (typeof said !== 'string') throw new SoaError('InvalidArgument', { argument: 'head', why: `a URL, or several with commas between them, not ${typeof said}` })
    this.#urls = headUrls(said, why => new SoaError('InvalidArgument', { argument: 'head', why }))
  }

  /** The one that answered last, or is asked first. */
  get current (): string { return this.#urls[this.#first] as string }
  get all (): readonly string[] { return this.#urls }
  get areSeveral (): boolean { return this.#urls.length > 1 }

  /** Heads of which this program was not told. */
  learn (urls: readonly string[]): void {
    for (const url of urls) if (this.#urls.length < MOST_HEADS && !this.#urls.includes(url)) this.#urls.push(url)
  }

  /**
   * Asks one head after the other until one answers, which is the first to be asked from then on.
   *
   * @param last URL of the one that is asked after all others
   * @throws what a head refused for good; `HeadsError` when none could do it for now, or with one head just what went wrong there
   */
  async ask<T> (signal: AbortSignal | undefined, one: (head: string) => Promise<T>, last?: string): Promise<T> {
    const failures: HeadFailure[] = []
    const inTurn = [...this.#urls.slice(this.#first), ...this.#urls.slice(0, this.#first)]
    for (const head of inTurn.filter(url => url !== last).concat(inTurn.filter(url => url === last))) {
      try {
        const answer = await one(head)
        this.#first = this.#urls.indexOf(head)
        return answer
      } catch (error) {
        if (signal?.aborted === true) throw signal.reason
        if (!passes(error)) throw error
        failures.push({ head, error })
      }
    }
    throw failures.length === 1 ? failures[0]?.error : new HeadsError(failures)
  }
}
