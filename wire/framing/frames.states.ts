import { states } from '../../core/machine.ts'

/**
 * Which record may come when: rows are what has been read, cells the record that comes. Anything else is no net.tcp framing.
 * The Preamble End record opens the session in the mode that was named, so it is two events.
 */
export const CLIENT_FRAMES = states({
  start: { version: 'versioned' },
  versioned: { mode: 'moded' },
  moded: { via: 'routed' },
  routed: { knownEncoding: 'encoded', extensibleEncoding: 'encoded' },
  // Several upgrades may follow one another. What comes behind one belongs to the upgrade until it says that it is done.
  encoded: { upgradeRequest: 'upgrading', openDuplex: 'duplex', openSingleton: 'singleton' },
  upgrading: { upgraded: 'encoded' },
  duplex: { sizedEnvelope: 'duplex', end: 'start' },
  singleton: { unsizedEnvelope: 'said', end: 'start' },
  said: { end: 'start' },
})

/** The same of what a server sends. After End the connection may be used again, when our side has sent a new preamble. */
export const SERVER_FRAMES = states({
  start: { upgradeResponse: 'upgrading', openDuplex: 'duplex', openSingleton: 'singleton', fault: 'failed' },
  upgrading: { upgraded: 'start' },
  duplex: { sizedEnvelope: 'duplex', end: 'ended', fault: 'failed' },
  singleton: { unsizedEnvelope: 'said', end: 'ended', fault: 'failed' },
  said: { end: 'ended', fault: 'failed' },
  ended: { again: 'start' },
  failed: {},
})
