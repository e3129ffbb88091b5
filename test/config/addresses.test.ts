import t from 'tap'
import { isLoopback, refuseManyAddresses, refuseOpenAddress } from '../../config/addresses.ts'

t.test('addresses: only loopback is open without a word', async t => {
  for (const host of ['127.0.0.1', '127.8.9.1', 'localhost', '[::1]', '::ffff:127.0.0.1']) {
    t.ok(isLoopback(host), host)
    refuseOpenAddress(host, false)
  }
  for (const host of ['', '0.0.0.0', '::', '10.0.0.1', 'grid.example']) {
    t.throws(() => refuseOpenAddress(host, false), { name: 'SoaError', fault: 'refused', message: /--insecure/ }, host)
    refuseOpenAddress(host, true)
  }
})

t.test('addresses: what brokers call is one address, not all of them', async t => {
  for (const host of ['127.0.0.1', '10.0.0.7', 'node-3.grid.example', '[fd00::7]']) refuseManyAddresses(host)
  for (const host of ['', '0.0.0.0', '::', '[::]', '10.0.0.7/8', 'a b']) t.throws(() => refuseManyAddresses(host), { name: 'SoaError', fault: 'Broker_InvalidConfiguration', message: /hostAddress/ }, host)
})
