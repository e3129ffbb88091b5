import { randomInt, randomUUID } from 'node:crypto'

/** A session id: a random 31-bit number as text, so HPC Pack clients can parse it as int32. Taken with SET NX by the caller. */
export const newSessionId = (): string => String(randomInt(1, 2 ** 31 - 1))

/** A message id in the form of WS-Addressing as WCF writes it. */
export const newMessageId = (): string => `urn:uuid:${randomUUID()}`
