import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import t from 'tap'
import { SoaError } from '../../core/errors.ts'
import { baseUrls, forwardedHeaders, type AddressSettings } from '../../transport/http/base-url.ts'

/** What a caller of this address is told who reached 10.0.0.1:8080. */
function told (headers: IncomingHttpHeaders, settings: Partial<AddressSettings> = {}, peer = '192.0.2.7', url?: string): string {
  const socket = { remoteAddress: peer, localAddress: '10.0.0.1', localPort: 8080 } as Socket
  return baseUrls({ advertise: '', trustedProxies: '', ...settings })({ headers, socket, url })
}
const behind = { trustedProxies: '192.0.2.7' }
const reached = 'http://10.0.0.1:8080'

t.test('base url: the host that the caller used, unless it is no host; then the address that it reached', async t => {
  for (const host of ['grid.example', 'grid.example:8080', '[::1]:80', '[2001:db8::1]', 'a_b', '10.1.2.3:1']) t.equal(told({ host }), `http://${host}`)
  for (const host of [undefined, '', 'a b', 'a"><script>', 'user@host', 'x/y', 'x?y', '[::1', '[::g]', '[1.2.3]', 'x:', 'x:0', 'x:65536', 'x:1234567', 'é.example', 'a'.repeat(254)]) t.equal(told({ host }), reached, String(host))
  t.equal(told({ host: 'header.example' }, {}, undefined, 'http://target.example:81/1/Http?wsdl'), 'http://target.example:81', 'a target that is a whole URL counts more')
  t.equal(told({ host: 'header.example' }, {}, undefined, '/1/Http?wsdl=http://evil.example/'), 'http://header.example')
})

t.test('base url: strangers are not believed what they say of proxies', async t => {
  const lies = { host: 'grid.example', forwarded: 'host=evil.example;proto=https', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil.example', 'x-forwarded-port': '1', 'x-forwarded-prefix': '/evil' }
  t.equal(told(lies), 'http://grid.example')
  t.equal(told(lies, { trustedProxies: '192.0.2.8, 10.0.0.0/8,2001:db8::/32,loopback' }), 'http://grid.example')
  for (const [networks, peer] of [['192.0.2.0/24', '192.0.2.7'], ['2001:db8::/32', '2001:db8::9'], ['loopback', '127.9.9.9'], ['loopback', '::1'], ['10.0.0.0/8', '::ffff:10.1.1.1'], ['0.0.0.0/0', '8.8.8.8']] as const) {
    t.equal(told(lies, { trustedProxies: networks }, peer), 'https://evil.example:1/evil', `${peer} in ${networks}`)
  }
  for (const [networks, peer] of [['192.0.2.0/24', '192.0.3.7'], ['2001:db8::/32', '2001:db9::9'], ['loopback', '128.0.0.1'], ['10.0.0.0/8', '::10.1.1.1']] as const) t.equal(told(lies, { trustedProxies: networks }, peer), 'http://grid.example', `${peer} not in ${networks}`)
})

t.test('base url: what a trusted proxy says', async t => {
  const of = (headers: IncomingHttpHeaders): string => told({ host: 'inner:8080', ...headers }, behind)
  const rows: Array<[headers: IncomingHttpHeaders, url: string]> = [
    [{}, 'http://inner:8080'],
    [{ host: 'grid.example', 'x-forwarded-proto': 'https' }, 'https://grid.example'],
    [{ host: 'grid.example', 'x-forwarded-proto': 'HTTPS', 'x-forwarded-port': '443' }, 'https://grid.example'],
    [{ host: 'grid.example', 'x-forwarded-proto': 'https', 'x-forwarded-port': '8443' }, 'https://grid.example:8443'],
    [{ host: 'grid.example', 'x-forwarded-port': '80' }, 'http://grid.example'],
    [{ 'x-forwarded-host': 'grid.example:8443', 'x-forwarded-proto': 'https', 'x-forwarded-port': '443' }, 'https://grid.example:8443'],
    [{ 'x-forwarded-host': '[2001:db8::1]', 'x-forwarded-port': '81' }, 'http://[2001:db8::1]:81'],
    [{ 'x-forwarded-host': 'grid.example', 'x-forwarded-prefix': '/grid/a/' }, 'http://grid.example/grid/a'],
    [{ forwarded: 'for=198.51.100.1;proto=https;host=grid.example' }, 'https://grid.example'],
    [{ forwarded: 'Host="grid.example:8443" ; PROTO=https', 'x-forwarded-prefix': '/soa' }, 'https://grid.example:8443/soa'],
    [{ forwarded: 'host=grid.example:8443;proto=https' }, 'https://grid.example:8443'],
    [{ forwarded: 'for="[2001:db8::9]:4711";host="[2001:db8::1]"' }, 'http://[2001:db8::1]'],
    [{ forwarded: 'for=_hidden;by="a,b;host=no";host=grid.example' }, 'http://grid.example'],
    // What is not well-formed says nothing.
    [{ forwarded: 'host=grid.example;"' }, 'http://inner:8080'],
    [{ forwarded: 'host="a\\"><script>"' }, 'http://inner:8080'],
    [{ 'x-forwarded-host': 'a b', 'x-forwarded-proto': 'gopher', 'x-forwarded-port': '0', 'x-forwarded-prefix': 'x' }, 'http://inner:8080'],
    ...['/a"b', '/../x', '/a/..', '/a//b', '//evil.example', '/a?b', '/<x>'].map((prefix): [IncomingHttpHeaders, string] => [{ 'x-forwarded-prefix': prefix }, 'http://inner:8080'])
  ]
  for (const [headers, url] of rows) t.equal(of(headers), url, JSON.stringify(headers))
})

t.test('base url: of a chain of proxies the outermost trusted one is believed, and nothing left of it', async t => {
  const chain = { trustedProxies: '192.0.2.7,10.0.0.0/8' }
  const headers = { host: 'inner', 'x-forwarded-host': 'evil.example, outer.example, middle.example', 'x-forwarded-proto': 'http, https, http' }
  t.equal(told({ ...headers, 'x-forwarded-for': '203.0.113.9, 198.51.100.1, 10.0.0.2' }, chain), 'https://outer.example')
  t.equal(told({ ...headers, 'x-forwarded-for': '203.0.113.9, 198.51.100.1, 198.51.100.2' }, chain), 'http://middle.example')
  t.equal(told(headers, chain), 'http://middle.example', 'without senders only our own peer\'s word counts')
  t.equal(told({ host: 'inner', 'x-forwarded-host': 'outer.example', 'x-forwarded-for': '198.51.100.1, 10.0.0.2' }, chain), 'http://outer.example', 'one value for all')
  const forwarded = 'for=1.1.1.1;host=evil.example, for=198.51.100.1;host=outer.example;proto=https, for="10.0.0.2:99";host=middle.example'
  t.equal(told({ host: 'inner', forwarded }, chain), 'https://outer.example')
  t.equal(told({ host: 'inner', forwarded }, behind), 'http://middle.example')
})

t.test('base url: what is advertised counts more than anything that a caller says', async t => {
  const lies = { host: 'evil.example', 'x-forwarded-host': 'evil.example' }
  for (const [advertise, url] of [
    ['grid.example', 'http://grid.example:8080'], ['grid.example:80', 'http://grid.example:80'], ['[2001:db8::1]', 'http://[2001:db8::1]:8080'],
    ['https://grid.example', 'https://grid.example'], ['HTTPS://grid.example:8443/soa/', 'https://grid.example:8443/soa'], ['http://grid.example/', 'http://grid.example']
  ] as const) t.equal(told(lies, { ...behind, advertise }), url, advertise)
})

t.test('base url: settings that mean nothing are refused by name', async t => {
  const refusal = (settings: Partial<AddressSettings>): string => {
    try { baseUrls({ advertise: '', trustedProxies: '', ...settings }) } catch (error) { if (error instanceof SoaError) return `${error.fault}: ${error.message}`; throw error }
    return 'was accepted'
  }
  for (const advertise of ['a b', 'grid.example/soa', 'ftp://grid.example', 'https://', 'https://grid.example/a"', '://x', 'x:99999']) t.match(refusal({ advertise }), /^Broker_InvalidConfiguration: advertise: HOST, HOST:PORT or a URL, not "/, advertise)
  for (const trustedProxies of ['10.0.0.0/33', 'grid.example', '10.0.0', '::1/129', '10.0.0.1,x', '10.0.0.0/8/8', '10.0.0.1/-1']) t.match(refusal({ trustedProxies }), /^Broker_InvalidConfiguration: trustedProxies: addresses and networks .* not "/, trustedProxies)
})

t.test('base url: between our processes an address goes as it was made', async t => {
  for (const url of ['http://grid.example', 'https://[2001:db8::1]:8443/a/b', 'http://10.0.0.1:8080']) {
    const pairs = forwardedHeaders(url)
    const headers = Object.fromEntries(Array.from({ length: pairs.length / 2 }, (_, i) => [pairs[2 * i] as string, pairs[2 * i + 1] as string]))
    const ours = { destroyed: false } as Socket // a Unix socket has no addresses
    t.equal(baseUrls({ advertise: 'other.example', trustedProxies: '' })({ headers: { host: 'x', ...headers }, socket: ours }), url)
  }
})
