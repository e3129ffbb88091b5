#!lua flags=allow-oom
-- Drops responses of one client up to and with a place, at most `most` of them in one call: a queue of any length is freed in short steps.
--
-- KEYS  meta, client, responses
-- ARGV  token, place, most
-- gives writes, 1 when there is more to drop
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local client = redis.call('HMGET', KEYS[2], 'released', 'responses')
local from = tonumber(client[1] or 0)
local through = math.min(tonumber(ARGV[2]), tonumber(client[2] or 0) - 1)
local last = math.min(through, from + tonumber(ARGV[3]) - 1)
if last < from then return { tonumber(redis.call('HGET', KEYS[1], 'writes') or 0), 0 } end
local freed, gone = 0, {}
for at = from, last do
  freed = freed + redis.call('HSTRLEN', KEYS[3], at)
  gone[#gone + 1] = at
end
inPieces('HDEL', KEYS[3], gone, 4000)
redis.call('HSET', KEYS[2], 'released', last + 1)
redis.call('HINCRBY', KEYS[2], 'bytes', 0 - freed)
redis.call('HINCRBY', KEYS[1], 'bytes', 0 - freed)
return { moved(KEYS[1]), last < through and 1 or 0 }
