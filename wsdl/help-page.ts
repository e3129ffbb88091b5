import { escapeText } from '../wire/xml/text-writer.ts'

export interface HelpPage {
  readonly title: string
  /** What is here, in a sentence or two. */
  readonly about: string
  readonly url: string
  /** Queries of the endpoint that have an answer. */
  readonly queries: readonly string[]
  readonly operations: ReadonlyArray<{ readonly name: string, readonly action: string, readonly oneWay?: boolean | undefined }>
}

const escape = (text: string): string => escapeText(text).replaceAll('"', '&quot;')

/** What a browser is shown at an endpoint: what it is, what it takes, and the line that makes a client of it in each language. */
export function helpPage ({ title, about, url, queries, operations }: HelpPage): string {
  const link = (query: string): string => `<a href="${escape(`${url}?${query}`)}">?${escape(query)}</a>`
  const hasWsdl = queries.includes('wsdl')
  const clients = !hasWsdl
    ? ''
    : `<h2>A client</h2>
<pre>.NET       dotnet-svcutil ${escape(url)}?wsdl
Python     zeep.Client('${escape(url)}?wsdl')
Node.js    await soap.createClientAsync('${escape(url)}?wsdl')
by hand    curl -H 'Content-Type: text/xml' -H 'SOAPAction: "${escape(operations[0]?.action ?? '')}"' --data @envelope.xml ${escape(url)}</pre>
`
  return `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>${escape(title)}</title>
<style>body { font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em } td, th { text-align: left; padding-right: 2em } pre { overflow: auto }</style></head>
<body><h1>${escape(title)}</h1>
<p>${escape(about)}</p>
<p>SOAP 1.1 and 1.2 are taken by POST at <code>${escape(url)}</code>.${hasWsdl ? ` WSDL: ${queries.map(link).join(' ')}` : ' There is no WSDL of it.'}</p>
${operations.length === 0
? ''
: `<table><tr><th>Operation</th><th>Action</th></tr>
${operations.map(({ name, action, oneWay }) => `<tr><td>${escape(name)}${oneWay === true ? ' (one-way)' : ''}</td><td><code>${escape(action)}</code></td></tr>`).join('\n')}
</table>
`}${clients}</body></html>
`
}
