#!lua flags=no-writes
-- KEYS  meta, clients
-- ARGV  token
-- gives the ids of all clients that have data
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end
return redis.call('SMEMBERS', KEYS[2])
