#!lua flags=no-writes
-- All of a custom broker's durable map.
--
-- KEYS  meta, state
-- ARGV  token
-- gives name and value of each entry, in no order
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end
return redis.call('HGETALL', KEYS[2])
