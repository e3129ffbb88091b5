import t from 'tap'
import { isSoaError } from '../../core/errors.ts'
import { readSettings, sessionSettings, unknownVariables } from '../../config/read-settings.ts'
import { SETTINGS, environmentName, flagName, settingNames } from '../../config/settings.ts'

const refusal = (call: () => unknown): string => {
  try { call() } catch (error) { if (isSoaError(error, 'Broker_InvalidConfiguration')) return error.message; throw error }
  return 'not refused'
}

t.test('settings: the names in the environment and on the command line follow from the setting\'s name', async t => {
  t.equal(environmentName('sessionIdleTimeout'), 'SOA_SESSION_IDLE_TIMEOUT')
  t.equal(environmentName('redis'), 'SOA_REDIS')
  t.equal(flagName('workerClaimTimeoutMs'), '--worker-claim-timeout-ms')
})

t.test('settings: a process without flags and environment runs with the table\'s defaults', async t => {
  const read = readSettings({}, {}) as unknown as Record<string, unknown>
  for (const name of settingNames()) t.equal(read[name], SETTINGS[name].default, name)
})

t.test('settings: a flag beats the environment, the environment beats the file', async t => {
  const env = { SOA_MAX_SESSIONS: '5', SOA_CORES: '3' }
  const read = readSettings(env, { maxSessions: '7' }, 'process', { maxSessions: 1, cores: 2, workerPoolSize: 4 })
  t.match(read, { maxSessions: 7, cores: 3, workerPoolSize: 4 })
})

t.test('settings: a bad value is refused with the name it was given under, the unit, the range and the value', async t => {
  t.equal(refusal(() => readSettings({ SOA_MAX_DEPTH: 'abc' }, {})), 'SOA_MAX_DEPTH: a whole number of levels, 8 to 1000, not "abc"')
  t.equal(refusal(() => readSettings({}, { maxSessions: '0' }, 'process')), '--max-sessions: a whole number of sessions, 1 to 100000, not "0"')
  t.equal(refusal(() => readSettings({}, {}, 'process', { durability: 'none' })), 'durability in the settings file: one of process, disk, replicas, not "none"')
  for (const bad of ['', ' 5', '5.0', '1e3', '0x10', '-1', '99999999999999999999']) t.match(refusal(() => readSettings({ SOA_MAX_SESSIONS: bad }, {})), /^SOA_MAX_SESSIONS: /, JSON.stringify(bad))
  t.match(refusal(() => readSettings({ SOA_INSECURE: 'yes' }, {})), /true or false, not "yes"/)
})

t.test('settings: a file with a name that no setting has is refused', async t => {
  t.equal(refusal(() => readSettings({}, {}, 'process', { maxsessions: 3 })), 'maxsessions: no setting has this name; did you mean maxSessions?')
  t.match(refusal(() => readSettings({}, {}, 'process', { toString: 3 })), /no setting has this name/)
})

t.test('settings: a session\'s wish beats the registration file, which beats the process', async t => {
  const defaults = readSettings({ SOA_MESSAGE_RESEND_LIMIT: '9', SOA_MAX_DEPTH: '50', SOA_MAX_HEADER_BYTES: '2048' }, {}, 'session')
  const read = sessionSettings(defaults, { messageResendLimit: 5, maxDepth: 60 }, { messageResendLimit: '0' })
  t.match(read, { messageResendLimit: 0, maxDepth: 60, maxHeaderBytes: 2048 })
})

t.test('settings: a session cannot set what is no session setting', async t => {
  const defaults = readSettings({}, {}, 'session')
  t.equal(refusal(() => sessionSettings(defaults, {}, { redis: 'redis://elsewhere' })), 'redis: is a setting of the process, not of a session')
  t.equal(refusal(() => sessionSettings(defaults, {}, { unitIdleTimeout: 1 })), 'unitIdleTimeout: no setting has this name; did you mean unitIdleTimeoutMs?')
  t.equal(refusal(() => sessionSettings(defaults, {}, { sesionIdleTimout: 3 })), 'sesionIdleTimout: no setting has this name; did you mean sessionIdleTimeout?')
  t.equal(refusal(() => sessionSettings(defaults, {}, { maxSession: 3 })).includes('maxSessions'), false, 'a setting of the process would not do there')
  t.match(refusal(() => sessionSettings(defaults, {}, { constructor: 1 })), /no setting has this name/)
  t.equal(refusal(() => sessionSettings(defaults, {}, { maxMessageSize: 100 })), 'maxMessageSize: a whole number of bytes, 512 to 1073741824, not 100')
})

t.test('settings: moving only the throttle\'s start takes the stop along at three quarters', async t => {
  const defaults = readSettings({}, {}, 'session')
  t.match(sessionSettings(defaults, { messageThrottleStartThreshold: 100 }, {}), { messageThrottleStopThreshold: 75 })
  t.match(sessionSettings(defaults, { messageThrottleStartThreshold: 100, messageThrottleStopThreshold: 10 }, {}), { messageThrottleStopThreshold: 10 })
  t.match(readSettings({ SOA_MESSAGE_THROTTLE_START_THRESHOLD: '40960' }, {}, 'session'), { messageThrottleStopThreshold: 30720 })
  t.equal(refusal(() => sessionSettings(defaults, {}, { messageThrottleStopThreshold: 5000 })), 'messageThrottleStopThreshold: must be below messageThrottleStartThreshold (4096 messages), not 5000')
})

t.test('settings: a variable that looks like one of ours and is none is found', async t => {
  t.strictSame(unknownVariables({ SOA_HTPP: 'x', SOA_HTTP: 'y', PATH: '/bin', SOA_CONFIG: 'f' }, ['SOA_CONFIG']), ['SOA_HTPP'])
})
