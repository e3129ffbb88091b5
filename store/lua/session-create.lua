#!lua
-- Takes a session id if it is free and puts the record at the end of the list. Sent again by the same caller: still taken by it.
--
-- KEYS  record, index (sorted set, in order of creation), served (hash: session id → worker), states (hash: see session-states.lua)
-- ARGV  op (new for each call), session id, worker as JSON or '', then fields and values of the record
-- gives 1 taken, 0 somebody has it
if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('HGET', KEYS[1], '_op') == ARGV[1] and 1 or 0 end
redis.call('HSET', KEYS[1], '_op', ARGV[1], unpack(ARGV, 4))
local last = redis.call('ZRANGE', KEYS[2], 0, 0, 'REV', 'WITHSCORES')
redis.call('ZADD', KEYS[2], tonumber(last[2] or 0) + 1, ARGV[2])
if ARGV[3] ~= '' then redis.call('HSET', KEYS[3], ARGV[2], ARGV[3]) end
if redis.call('EXISTS', KEYS[4]) == 1 then redis.call('HINCRBY', KEYS[4], redis.call('HGET', KEYS[1], 'state'), 1) end
return 1
