import type { Agent, Dispatcher } from 'undici'
import type { Client, IHttpClient, SoapMethod } from 'soap'
import { SOAP11, type Reading } from '../wire/soap/envelope.ts'
import { messageIdHeader } from '../wire/soap/hpc-headers.ts'

/**
 * Who writes and carries the SOAP of `send` and `call` over HTTP; net-tcp-transport.ts does it over net.tcp. Give `openTransport` another default to change it.
 *
 * `soap` (node-soap) is the default: it finds the port and the operation in the WSDL, builds envelope and HTTP headers, and calls out through
 * an HTTP client of ours. Bodies are given to it as text (`_xml`) and replies are not shown to it: its own codec fails strict peers.
 * `plain` writes the same envelope itself; it also serves what `soap` cannot load, such as a WSDL that has only a net.tcp binding,
 * and style rpc, where `soap` puts a wrapper around the text that it is given.
 */
export type TransportKind = 'soap' | 'plain'

export interface Exchange {
  readonly operation: string
  readonly action: string
  readonly messageId: string
  /** Whose channel it goes on, where there are channels; undefined: that of calls, which are no client's. */
  readonly clientId?: string | undefined
  readonly isOneWay: boolean
  /** Elements for the header beside the message id, each self-contained. */
  readonly headers: string
  /** The element of the body, self-contained. */
  readonly body: string
  readonly signal: AbortSignal
}

/** An HTTP answer, whatever its status; or a message of a channel, with the status that it would have over HTTP. */
export type Answer = HttpAnswer | { readonly status: number, readonly reading: Reading | undefined }
export interface HttpAnswer { readonly status: number, readonly contentType: string, readonly body: Uint8Array }

export interface Transport {
  /** One request, one answer. Rejects only when none came: with what undici throws, or the signal's reason. */
  exchange (exchange: Exchange): Promise<Answer>
  /** The client has no use for its channel for now. */
  release? (clientId: string): Promise<void>
  /** The endpoint is another one now. */
  renew? (): Promise<void>
  close? (): Promise<void>
}

export interface TransportNeeds {
  readonly agent: Agent
  /** Where requests go: asked for each, because the head of today may be another tomorrow. */
  readonly endpoint: () => string
  /** One document, schemas inside. */
  readonly wsdl: string
  /** All of the service's operations: where `soap` finds fewer, `plain` is taken. */
  readonly operations: readonly string[]
}

export async function openTransport (needs: TransportNeeds, kind: TransportKind = 'soap'): Promise<Transport> {
  if (kind === 'plain') return plainTransport(needs)
  const client = await openSoapClient(needs)
  const methods = client && methodsOf(client)
  return client && methods && needs.operations.every(name => methods.has(name)) ? soapTransport(client, methods, needs) : plainTransport(needs)
}

async function post (agent: Agent, url: string, body: string, headers: Record<string, string>, signal: AbortSignal): Promise<HttpAnswer> {
  const { origin, pathname, search } = new URL(url)
  const answer: Dispatcher.ResponseData = await agent.request({ origin, path: pathname + search, method: 'POST', headers, body, signal })
  return { status: answer.statusCode, contentType: String(answer.headers['content-type'] ?? ''), body: await answer.body.bytes() }
}

function plainTransport ({ agent, endpoint }: TransportNeeds): Transport {
  return {
    exchange ({ action, messageId, headers, body, signal }) {
      const envelope = `<s:Envelope xmlns:s="${SOAP11}"><s:Header>${headers}${messageIdHeader(messageId).toString()}</s:Header><s:Body>${body}</s:Body></s:Envelope>`
      return post(agent, endpoint(), envelope, { 'content-type': 'text/xml; charset=utf-8', soapaction: `"${action}"` }, signal)
    }
  }
}

/** What `exchange` hands through `soap` to our HTTP client. */
interface Passage { readonly signal: AbortSignal, readonly answered: (answer: Promise<Answer>) => void }

function soapTransport (client: Client, methods: ReadonlyMap<string, SoapMethod>, needs: TransportNeeds): Transport {
  const plain = plainTransport(needs)
  // A function, not a value: headers that are set on the client would be those of whoever set them last.
  client.addSoapHeader((_method: unknown, _location: unknown, _action: unknown, args: { headers: string }) => args.headers)
  return {
    exchange (exchange) {
      const { operation, action, body, signal } = exchange
      const headers = exchange.headers + messageIdHeader(exchange.messageId).toString()
      if (body === '') return plain.exchange(exchange) // `soap` takes no text for "nothing given"
      return new Promise((resolve, reject) => {
        const passage: Passage = { signal, answered: resolve }
        // The callback hears only of what goes wrong before our HTTP client is reached: the answer never goes back into `soap`.
        const failed = (error: unknown): void => reject(error)
        const method = methods.get(operation) as SoapMethod
        method({ _xml: body, headers }, failed, { passage, exchangeId: operation }, { SOAPAction: `"${action}"` })
      })
    }
  }
}

async function openSoapClient ({ agent, endpoint, wsdl }: TransportNeeds): Promise<Client | undefined> {
  // Loaded when the first request is sent: it takes 100 ms and 22 MiB, and whoever only reads responses needs none of it.
  const { createClientAsync } = await import('soap')
  const http = {
    request (_url: string, data: string | null, done: (error: unknown, response?: unknown, body?: string) => void, headers: Record<string, string>, options?: { passage?: Passage }) {
      const passage = options?.passage
      if (data === null || passage === undefined) done(null, { status: 200, headers: {} }, wsdl)
      else passage.answered(post(agent, endpoint(), data, headers, passage.signal))
    }
  } as unknown as IHttpClient
  try {
    return await createClientAsync(`${endpoint()}?singleWsdl`, { endpoint: endpoint(), httpClient: http, disableCache: true, ignoredNamespaces: { namespaces: [], override: true } })
  } catch {
    return undefined // a WSDL that `soap` does not load; ours has been read before, so it is a good one
  }
}

/** Operations of the SOAP 1.1 port: the short `client.op` would be the last port's, whichever that is. */
function methodsOf (client: Client): Map<string, SoapMethod> | undefined {
  const services = client as unknown as Record<string, Record<string, Record<string, SoapMethod>>>
  const described = client.describe() as Record<string, Record<string, Record<string, unknown>>>
  for (const [service, ports] of Object.entries(described)) {
    for (const [port, operations] of Object.entries(ports)) {
      const methods = services[service]?.[port]
      if (methods) return new Map(Object.keys(operations).map(name => [name, methods[name] as SoapMethod]))
    }
  }
  return undefined
}
