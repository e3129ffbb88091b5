#!lua flags=no-writes
-- What is known of one client, without bodies.
--
-- KEYS  meta, client, requests
-- ARGV  token
-- gives display, appended, committed, committedSeq, eom, batch, responses, faults, then the seqs of its requests in no order
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

return {
  redis.call('HMGET', KEYS[2], 'display', 'appended', 'committed', 'committedSeq', 'eom', 'batch', 'responses', 'faults'),
  redis.call('HKEYS', KEYS[3])
}
