/**
 * How a service host's process ends: the statuses that our own host uses, HPC Pack's where it has them ([broker-behaviour] 7.1, 7.4, 7.5; -1, -2 and -3 are
 * 255, 254 and 253 in a status of eight bits). Failures to start are 100 + HPC Pack's ServiceHost_ number. docs/service-hosts.md has this table too.
 */
export const HOST_EXITS = {
  asAsked: { code: 0, says: 'ended as it was asked to (SIGTERM, Exit), or had no call for serviceHostIdleTimeout' },
  uncaught: { code: 1, says: 'an exception that nobody caught' },
  moduleMissing: { code: 101, says: 'the module (assembly) is not there' },
  moduleBroken: { code: 102, says: 'the module cannot be loaded: it throws, or is no JavaScript' },
  contractUnknown: { code: 103, says: 'the WSDL cannot be read, or has no such contract' },
  contractUnmet: { code: 106, says: 'the module lacks operations of the contract' },
  notListening: { code: 107, says: 'the port cannot be listened on' },
  badSpec: { code: 114, says: 'what the node manager said cannot be read' },
  unexpected: { code: 120, says: 'could not start for another reason' },
  hung: { code: 253, says: 'calls made no progress for serviceHangTimeout' },
  addressInUse: { code: 254, says: 'the address is in use' },
  callsCut: { code: 255, says: 'was asked to end, and calls or onExiting handlers were not done within the grace' },
} as const satisfies Record<string, { code: number, says: string }>

export type HostExitName = keyof typeof HOST_EXITS

/** Signals that a process ends by when its own fault is the reason; a shell says 128 + number for them. */
const FAULT_SIGNALS: Readonly<Record<number, string>> = { 4: 'SIGILL', 6: 'SIGABRT', 7: 'SIGBUS', 8: 'SIGFPE', 9: 'SIGKILL', 11: 'SIGSEGV', 15: 'SIGTERM' }

/** `exit code 139 (128 + SIGSEGV)`. `isOurs`: the process was our own host, whose statuses mean what the table says. */
export function exitCodeText (code: number, isOurs: boolean): string {
  const known = isOurs ? Object.values(HOST_EXITS).find(row => row.code === code && code > 1)?.says : undefined
  const signal = FAULT_SIGNALS[code - 128]
  const meaning = known ?? (signal === undefined ? undefined : `128 + ${signal}`)
  return `exit code ${code}${meaning === undefined ? '' : ` (${meaning})`}`
}
