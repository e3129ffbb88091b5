#!lua flags=allow-oom
-- KEYS  record, index, served, states
-- ARGV  session id
local state = redis.call('HGET', KEYS[1], 'state')
if state and redis.call('EXISTS', KEYS[4]) == 1 then redis.call('HINCRBY', KEYS[4], state, -1) end
redis.call('UNLINK', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('UNLINK', KEYS[4]) end
return 1
