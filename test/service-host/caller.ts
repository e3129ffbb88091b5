export const SOAP = { 11: 'http://schemas.xmlsoap.org/soap/envelope/', 12: 'http://www.w3.org/2003/05/soap-envelope' } as const
const WSA = 'http://www.w3.org/2005/08/addressing'

export interface Reply { readonly status: number, readonly contentType: string, readonly text: string }

/** SOAP by hand over HTTP: what is sent is seen in the test. */
export class Caller {
  readonly url: string

  constructor (url: string) { this.url = url }

  async post (body: string, headers: Record<string, string>): Promise<Reply> {
    const response = await fetch(this.url, { method: 'POST', body, headers })
    return { status: response.status, contentType: response.headers.get('content-type') ?? '', text: await response.text() }
  }

  /** A call in SOAP 1.1 with SOAPAction, or in SOAP 1.2 with WS-Addressing. */
  call (soap: 11 | 12, action: string, body: string, headers = ''): Promise<Reply> {
    const wsa = soap === 11 ? '' : `<a:Action s:mustUnderstand="1" xmlns:a="${WSA}">${action}</a:Action><a:MessageID xmlns:a="${WSA}">urn:uuid:11111111-2222-3333-4444-555555555555</a:MessageID>`
    const envelope = `<s:Envelope xmlns:s="${SOAP[soap]}"><s:Header>${wsa}${headers}</s:Header><s:Body>${body}</s:Body></s:Envelope>`
    return this.post(envelope, soap === 11 ? { 'content-type': 'text/xml; charset=utf-8', soapaction: `"${action}"` } : { 'content-type': 'application/soap+xml; charset=utf-8' })
  }
}
