import type { FastifyInstance } from 'fastify'
import { within, type Clock } from '../../core/clock.ts'

/** One thing that must hold for sessions to be created and computed. Resolves to undefined when it does, else to why not. */
export interface Check { readonly name: string, readonly run: () => Promise<string | undefined> | string | undefined }

/** A check that hangs is a check that fails: whoever asks has a time limit of their own. */
const CHECK_MS = 2000

/**
 * `/healthz`: the process answers (restart it when not). `/readyz`: 200 when every check holds, else 503 with the ones that fail and why, so that
 * nobody has to guess from time-outs what is down.
 */
export function healthRoutes (app: FastifyInstance, { checks, clock }: { checks: readonly Check[], clock: Clock }): void {
  app.get('/healthz', { schema: { hide: true } }, async () => ({ status: 'ok' }))
  app.get('/readyz', { schema: { hide: true } }, async (_request, reply) => {
    const results = await Promise.all(checks.map(async ({ name, run }) => [name, await reason(run, clock)] as const))
    const failing = results.filter(([, why]) => why !== undefined).map(([name]) => name)
    const shown = Object.fromEntries(results.map(([name, why]) => [name, why === undefined ? { ok: true } : { ok: false, why }]))
    return reply.code(failing.length === 0 ? 200 : 503).header('cache-control', 'no-store').send({ ready: failing.length === 0, failing, checks: shown })
  })
}

async function reason (run: Check['run'], clock: Clock): Promise<string | undefined> {
  try {
    return await within(clock, CHECK_MS, Promise.resolve(run()), () => new Error(`no answer within ${CHECK_MS} ms`))
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
