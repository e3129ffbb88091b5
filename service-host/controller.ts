import type { SoapEndpoint } from '../transport/channel.ts'
import { serveContract } from '../transport/serve-contract.ts'
import { SERVICE_HOST } from '../wsdl/contracts.ts'

/** The host's own endpoint beside the service's: HPC's IHpcServiceHost ([wire-contract] 1.6). `Exit` is one-way: it is answered, and then the host ends. */
export function hostController (limits: SoapEndpoint['limits'], exit: () => void): SoapEndpoint {
  const endpoint = serveContract(SERVICE_HOST, limits, {
    async Exit () {
      setImmediate(exit)
      return {}
    }
  })
  return {
    limits: endpoint.limits,
    async handle (request) {
      await endpoint.handle(request)
      return { oneWay: true }
    }
  }
}
