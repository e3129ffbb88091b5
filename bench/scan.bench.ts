/** How fast messages are read and written, per second of processor time. `node dist/bench/scan.bench.js`; one JSON line per case. */
import { readEnvelope } from '../wire/soap/read.ts'
import { writeEnvelope } from '../wire/soap/write.ts'

const limits = { maxHeaderBytes: 65_536, maxDepth: 128 }
const envelope = (body: string): Buffer => Buffer.from(`<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="http://www.w3.org/2005/08/addressing"><s:Header>
<a:Action s:mustUnderstand="1">http://tempuri.org/IPricer/Price</a:Action><a:MessageID>urn:uuid:7c2b3c52-0d6e-4a58-9d2e-8f3b8a1c4e55</a:MessageID>
<HPCServer2008_Broker_UserDataNS xmlns="http://www.microsoft.com/hpc">7</HPCServer2008_Broker_UserDataNS>
<HPCServer2008_Broker_ClientIdNS xmlns="http://www.microsoft.com/hpc">client-1</HPCServer2008_Broker_ClientIdNS>
<a:To s:mustUnderstand="1">http://localhost:8080/1730412/Http</a:To></s:Header><s:Body>${body}</s:Body></s:Envelope>`)

const option = '<Option><Strike>101.25</Strike><Spot>99.5</Spot><Rate>0.015</Rate><Volatility>0.22</Volatility><Maturity>1.5</Maturity></Option>'
const cases: Array<[string, Buffer]> = [
  ['small', envelope(`<Price xmlns="http://tempuri.org/">${option}</Price>`)],
  ['ints (70,000 elements)', envelope(`<Sum xmlns="http://tempuri.org/" xmlns:b="http://schemas.microsoft.com/2003/10/Serialization/Arrays">${'<b:int>12345</b:int>'.repeat(70_000)}</Sum>`)],
  ['records', envelope(`<Book xmlns="http://tempuri.org/">${option.repeat(10_000)}</Book>`)],
  ['indented records', envelope(`<Book xmlns="http://tempuri.org/">${option.replaceAll('<', '\n      <').repeat(10_000)}</Book>`)],
  ['base64', envelope(`<Blob xmlns="http://tempuri.org/"><data>${Buffer.alloc(2 ** 20, 'soa').toString('base64')}</data></Blob>`)],
]

for (const [name, bytes] of cases) {
  const measure = (work: () => unknown): number => {
    const until = (ms: number): number => {
      const start = process.cpuUsage()
      for (let rounds = 0; ; rounds++) {
        const { user, system } = process.cpuUsage(start)
        if (user + system > ms * 1000) return rounds / (user + system) * 1e6
        for (let i = 0; i < 10; i++) work()
        rounds += 9
      }
    }
    until(300)
    return until(1000)
  }
  const read = measure(() => readEnvelope(bytes, { limits }))
  const { envelope } = readEnvelope(bytes, { limits })
  const write = measure(() => writeEnvelope(envelope, { addressing: 'wsa' }))
  const mb = bytes.length / 1e6
  console.log(JSON.stringify({ case: name, bytes: bytes.length, readPerSecond: Math.round(read), readMBs: Math.round(read * mb), writePerSecond: Math.round(write), writeMBs: Math.round(write * mb) }))
}
