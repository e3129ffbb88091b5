#!lua flags=no-writes
-- KEYS  meta
-- ARGV  token
-- gives purgedTotal, purgedProcessed, purgedFaulted, bytes, letters
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end
return redis.call('HMGET', KEYS[1], 'purgedTotal', 'purgedProcessed', 'purgedFaulted', 'bytes', 'letters')
