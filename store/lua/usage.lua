#!lua flags=allow-oom
-- What sessions keep, and all of them together. A session that keeps nothing is taken off.
--
-- KEYS  stored (hash: session id → bytes), stored:total
-- ARGV  session id and bytes of each
-- gives bytes of all sessions
local grown = 0
for i = 1, #ARGV, 2 do
  local now = tonumber(ARGV[i + 1])
  grown = grown + now - tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or 0)
  if now == 0 then redis.call('HDEL', KEYS[1], ARGV[i]) else redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('DEL', KEYS[2]) return 0 end
if grown == 0 then return tonumber(redis.call('GET', KEYS[2]) or 0) end
return redis.call('INCRBY', KEYS[2], string.format('%.0f', grown))
