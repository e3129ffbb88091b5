import type { Settings } from '../../config/settings.ts'
import { DeadLetters } from './dead-letters.ts'
import type { Desk } from './dispatcher.ts'
import { ReEmission } from './re-emission.ts'
import { triesDesk } from './tries-desk.ts'

type LettersNeeds = ConstructorParameters<typeof DeadLetters>[0]

interface Needs extends LettersNeeds, Pick<Parameters<typeof triesDesk>[0], 'desk' | 'custom' | 'requestAction' | 'failed'> {
  settings: Settings
  /** A custom broker says which dispatcher gets which request: then nothing is sent to a second one behind its back. */
  choosesDispatchers: boolean
}

/** What becomes of requests that fail, are slow, or have been given up: the session's desk with all that, and its dead letters. */
export function sessionTries (needs: Needs): { desk: Desk, letters: DeadLetters } {
  const { settings: { messageResendLimit: resendLimit, multiEmissionDelayTime: delayMs }, requests, counters, clock, queueOf, signal, log } = needs
  const letters = new DeadLetters(needs)
  const isReEmitting = delayMs >= 0 && resendLimit > 0 && !needs.choosesDispatchers
  if (delayMs >= 0 && !isReEmitting) log.warn({ multiEmissionDelayTime: delayMs, messageResendLimit: resendLimit }, `no request is sent to a second instance: ${resendLimit > 0 ? 'the custom broker chooses them' : 'messageResendLimit is 0'}`)
  const desk = triesDesk({
    ...needs,
    letters,
    reEmission: isReEmitting ? new ReEmission({ delayMs, resendLimit, requests, counters, clock }) : undefined,
    displayIdOf: request => { const queue = queueOf(request.clientKey); return queue === request.owner ? queue?.displayId : undefined },
    resendLimit,
    now: () => clock.now(),
    failed: error => { if (!signal.aborted) needs.failed(error) },
  })
  return { desk, letters }
}
