import type { FastifyError, FastifyRequest } from 'fastify'
import { FAULTS } from '../../../core/errors.ts'
import { cutText } from '../../../core/cut-text.ts'
import { didYouMean, nearNames } from '../../../core/near-names.ts'
import type { Problem } from '../../contract.ts'
import { EXPECTED_BY_PATTERN } from './schemas.ts'

/** An error of ajv with `verbose`: the value that it is about, and the schema that asks for something else. */
interface Verbose { keyword: string, instancePath: string, params: Record<string, unknown>, message?: string, data?: unknown, parentSchema?: { properties?: object } }

const SHOWN_CHARACTERS = 100

const TYPES: Readonly<Record<string, string>> = { string: 'a text', integer: 'a whole number', number: 'a number', boolean: 'true or false', object: 'an object', array: 'a list', null: 'null' }

/** What a route's schema refuses, the same way for all routes: where it is, its name, what is allowed there, and what was seen. */
export function invalid (error: FastifyError, request: FastifyRequest): Problem {
  const where = error.validationContext === 'querystring' ? 'query' : error.validationContext ?? 'body'
  const first = (error.validation?.[0] ?? { keyword: '', instancePath: '', params: {}, message: error.message }) as Verbose
  const path = first.instancePath.slice(1).replaceAll('/', '.')
  const problem = (detail: string, field: string, more: Partial<Problem> = {}): Problem =>
    ({ title: 'Bad Request', status: 400, detail, code: FAULTS.InvalidArgument.code, name: 'InvalidArgument', ...(field === '' ? {} : { setting: field }), ...more })
  const inside = (name: unknown): string => path === '' ? String(name) : `${path}.${String(name)}`

  if (first.keyword === 'additionalProperties') {
    const extra = String(first.params.additionalProperty)
    const known = Object.keys(first.parentSchema?.properties ?? {})
    const field = cutText(inside(extra), SHOWN_CHARACTERS)
    return problem(`${where}: ${field} is not known here${didYouMean(nearNames(extra, known))}; ${known.length === 0 ? elsewhere(extra, where, request) : `known are ${known.join(', ')}`}`, field)
  }
  if (first.keyword === 'required') {
    const field = inside(first.params.missingProperty)
    return problem(`${where}: ${field} is missing`, field)
  }
  const expected = expectedBy(first)
  const seen = first.data === undefined || (first.data === null && path === '') ? 'nothing' : cutText(JSON.stringify(first.data), SHOWN_CHARACTERS)
  const isRepeated = where === 'query' && Array.isArray(first.data)
  const detail = `${where}${path === '' ? '' : `: ${path}`} must be ${isRepeated ? 'given once' : expected ?? first.message?.replace(/^must be /, '') ?? 'something else'}, not ${seen}`
  return problem(detail, path, path === '' ? {} : { value: seen, ...(expected === undefined || isRepeated ? {} : { limit: expected }) })
}

/** A query where none is read: it may be meant for the body. */
function elsewhere (name: string, where: string, request: FastifyRequest): string {
  const body = (request.routeOptions.schema?.body as { properties?: object } | undefined)?.properties ?? {}
  return where === 'query' && name in body ? `it goes into the body: {${JSON.stringify(name)}: …}` : `this call takes nothing in its ${where}`
}

function expectedBy ({ keyword, params }: Verbose): string | undefined {
  switch (keyword) {
    case 'type': return or([params.type].flat().map(type => TYPES[String(type)] ?? String(type)))
    case 'enum': return or((params.allowedValues as unknown[]).map(String))
    case 'pattern': return EXPECTED_BY_PATTERN.get(String(params.pattern))
    default: return undefined
  }
}

const or = (words: readonly string[]): string => words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`
