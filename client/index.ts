/**
 * The TypeScript client of a SOA broker.
 *
 *     import { DurableSession } from 'soa-broker/client'
 *
 *     await using session = await DurableSession.create({ service: 'CcpEchoSvc' })
 *     const client = session.client('reports')
 *     await Promise.all(lines.map((input, row) => client.send('Echo', { input }, { userData: String(row) })))
 *     await client.endRequests()
 *     for await (const response of client.responses()) console.log(response.userData, response.result())
 *     await session.close()
 */
export { DEFAULT_HEAD, DurableSession, Session, type ClientInfo, type ConnectOptions, type SessionInfo, type SessionOptions } from './session.ts'
export { BrokerClient, type ClientOptions, type SendOptions, type SignalOption, type WaitOptions } from './broker-client.ts'
export type { Response } from './response.ts'
export type { ResponsesOptions } from './responses.ts'
export type { ClientStatus } from './controller.ts'
export type { AnyContract, ContractType, OperationType } from './contract-types.ts'
export type { UserData } from './user-data.ts'
export { ClientError, ConnectionError, ProblemError, RetryOperationError, SoapFaultError, WaitTimeoutError } from './errors.ts'
export { SoaError } from '../core/errors.ts'
