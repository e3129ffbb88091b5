#!lua flags=allow-oom
-- A node manager is there. It starts with nothing: what the table had for this node failed with the manager before it, whose epoch is over.
--
-- KEYS  version
-- ARGV  node, record (JSON), ISO time
-- gives its epoch
-- include placement-common.lua
local node = ARGV[1]
endAll(node, 'Failed', ARGV[3], 'the node manager of ' .. node .. ' started anew')
local epoch = bump()
redis.call('HSET', at .. 'nodes', node, ARGV[2])
redis.call('HSET', at .. 'epochs', node, epoch)
redis.call('ZADD', at .. 'beats', now(), node)
redis.call('ZREM', at .. 'dead', node)
redis.call('HDEL', at .. 'news', node)
redis.call('SREM', at .. 'leaving', node)
flush()
changed()
return epoch
