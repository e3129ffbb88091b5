import type { Envelope } from '../wire/soap/envelope.ts'
import type { AnyContract, ContractType } from './contract-types.ts'
import type { SoapFaultError } from './errors.ts'

/** What came of one request. */
export interface Response<C extends ContractType<C> = AnyContract, O extends keyof C & string = keyof C & string> {
  /** Of the request. */
  readonly messageId: string
  /** As sent: the text, or the inside of the header element where that holds elements. */
  readonly userData: string
  /** Operation of the request; empty when the WSDL has none of its action. */
  readonly op: O
  /** The fault, where the service or the broker answered with one. */
  readonly fault?: SoapFaultError | undefined
  /** The reply's wrapper element as a value: `{ EchoResult: 'hi' }`. @throws the fault; `SoaError` when the reply is not what the WSDL says. */
  result (): C[O]['result']
  /** The message itself; its body is XML between Body's tags. */
  readonly envelope: Envelope
}
