/** What one operation takes and gives, as values (wsdl/schema/reader.ts says how XML Schema types look). */
export interface OperationType {
  /** Members of the request's wrapper element. */
  readonly args: unknown
  /** The reply's wrapper element as a value: `{ EchoResult: 'hi' }`; `{}` for a void operation. */
  readonly result: unknown
}

/** A service contract as a type: operations by name. `soa service types` makes one from a WSDL. */
export type ContractType<C> = { readonly [O in keyof C]: OperationType }

/** When nobody says what the contract is: every name, checked against the WSDL at run time only. */
export type AnyContract = { readonly [operation: string]: { readonly args: Readonly<Record<string, unknown>>, readonly result: unknown } }
