#!lua flags=allow-oom
-- Removes all of one client, its dead letters too, and adds its totals to the session's purged counters in the same step. A client that is gone: nothing happens.
-- total = answered and still outstanding, committed or not: what the session's own total had counted.
--
-- KEYS  meta, clients, client, requests, responses, dead, letters
-- ARGV  token, clientId
-- gives writes
-- include owner.lua
-- include letters.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local client = redis.call('HMGET', KEYS[3], 'responses', 'faults', 'bytes', 'appended')
if not client[4] then return tonumber(redis.call('HGET', KEYS[1], 'writes') or 0) end
local processed = tonumber(client[1] or 0)
redis.call('HINCRBY', KEYS[1], 'purgedTotal', processed + redis.call('HLEN', KEYS[4]))
redis.call('HINCRBY', KEYS[1], 'purgedProcessed', processed)
redis.call('HINCRBY', KEYS[1], 'purgedFaulted', tonumber(client[2] or 0))
local freed = tonumber(client[3] or 0)
for _, member in ipairs(redis.call('ZRANGE', KEYS[6], 0, -1)) do
  if string.match(member, '^%d+ %d+ %l (.*)$') == ARGV[2] then freed = freed + dropLetter(KEYS[6], KEYS[7], member) end
end
redis.call('HINCRBY', KEYS[1], 'bytes', 0 - freed)
redis.call('UNLINK', KEYS[3], KEYS[4], KEYS[5])
redis.call('SREM', KEYS[2], ARGV[2])
return moved(KEYS[1])
