import { headMain, type HeadOptions } from '../../broker/head/main.ts'
import { silent } from '../../core/log.ts'

/** A head as a process of its own, so that a test can kill it. Options as JSON in SOA_TEST_HEAD; the first line on stdout has its URL. */
const options = JSON.parse(process.env.SOA_TEST_HEAD ?? '{}') as HeadOptions
const head = await headMain({ ...options, log: silent, env: process.env })
process.stdout.write(`${JSON.stringify({ ready: true, http: head.http })}\n`)
process.once('SIGTERM', () => { void head.close().then(() => process.exit(0)) })
