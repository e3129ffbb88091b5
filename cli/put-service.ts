import type { LoadedService } from '../config/load-services.ts'
import type { HeadApi } from './head-api.ts'

/** Registers a service that was read from disk: file, WSDL and schemas travel as text, so the head needs no access to this disk. */
export async function putService (head: HeadApi, service: LoadedService): Promise<void> {
  await head.call('PUT', `services/${encodeURIComponent(service.name)}`, service)
}
