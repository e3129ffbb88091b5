#!lua flags=allow-oom
-- The node takes no new task (or takes them again). Kept over a restart of its node manager.
--
-- KEYS  version
-- ARGV  node, draining 0|1
-- gives 1, or 0 when there is no such node
-- include placement-common.lua
if redis.call('HEXISTS', at .. 'nodes', ARGV[1]) == 0 then return 0 end
redis.call(ARGV[2] == '1' and 'SADD' or 'SREM', at .. 'draining', ARGV[1])
bump()
changed()
return 1
