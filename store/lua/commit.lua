#!lua flags=allow-oom
-- All requests up to a seq are committed, and the end mark is kept in the same step. Sent again, or late after a commit that goes
-- further, it takes nothing back. A commit beyond what was appended is refused with BEYOND: it would promise what is not there.
--
-- allow-oom: a few bytes, and the requests are in already. It writes even when nothing changes, so that a WAIT after it waits for
-- everything before it too.
--
-- KEYS  meta, clients, client
-- ARGV  token, clientId, displayId, seq, committed, endOfMessages 0|1, batchId
-- gives writes
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local client = redis.call('HMGET', KEYS[3], 'appended', 'committedSeq', 'committed', 'batch')
local seq = tonumber(ARGV[4])
if seq > tonumber(client[1] or 0) then return redis.error_reply(string.format('BEYOND commit through %.0f, appended are %s', seq, client[1] or '0')) end
if not client[1] then
  redis.call('SADD', KEYS[2], ARGV[2])
  redis.call('HSETNX', KEYS[3], 'display', ARGV[3])
  redis.call('HSETNX', KEYS[3], 'appended', 0)
end
if seq >= tonumber(client[2] or 0) then
  redis.call('HSET', KEYS[3], 'committedSeq', ARGV[4], 'committed', math.max(tonumber(ARGV[5]), tonumber(client[3] or 0)), 'batch', math.max(tonumber(ARGV[7]), tonumber(client[4] or -1)))
end
if ARGV[6] == '1' then redis.call('HSET', KEYS[3], 'eom', 1) end
return moved(KEYS[1])
