#!lua flags=allow-oom
-- The session wants this. Said again unchanged, it only renews the time of the assertion.
--
-- KEYS  version
-- ARGV  session, demand (JSON, fields always in the same order)
-- gives 1 when it is new, else 0
-- include placement-common.lua
local session, demand = ARGV[1], ARGV[2]
redis.call('ZADD', at .. 'asserted', now(), session)
if redis.call('HGET', at .. 'demands', session) == demand then return 0 end
redis.call('HSET', at .. 'demands', session, demand)
bump()
changed()
return 1
