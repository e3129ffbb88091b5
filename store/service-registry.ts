/** Registered services, shared by heads, workers and node managers through Redis. */
export interface RegisteredService {
  /** The file's name without `.config` and version. */
  readonly name: string
  /** From `<service>_<version>.config`; undefined: unversioned. */
  readonly version?: string | undefined
  /** The registration file as it was given (HPC Pack's XML). */
  readonly config: string
  /** Where the file lay: `assembly` is relative to it. */
  readonly file: string
  /** The main WSDL's absolute path, as far as there is one. */
  readonly wsdlFile?: string | undefined
  /** Text of the WSDL and of every schema it imports, by absolute path. */
  readonly documents: Readonly<Record<string, string>>
  /** ISO 8601 UTC. */
  readonly addedAt: string
}

export interface ServiceRegistry {
  put (service: RegisteredService): Promise<void>
  /**
   * No version asked: the unversioned one if there is one, else the highest. Refuses with `Service_NotFound` or `ServiceVersion_NotFound`
   * ([broker-behaviour] 6.10). Names are compared without case, as on Windows.
   */
  get (name: string, version?: string): Promise<RegisteredService>
  list (): Promise<RegisteredService[]>
}
