#!lua flags=allow-oom
-- A node manager is there. It starts with nothing: what the table had for this node failed with the manager before it, whose epoch is over.
-- While another manager has the name it is refused, unless that one was declared dead, or the newcomer has found it dead and it has done nothing since.
--
-- KEYS  version
-- ARGV  node, record (JSON), ISO time, epoch and beat of the manager that was found dead ('' for none)
-- gives {1, its epoch}, or {0, record, epoch, beat and ms since that beat of the one that has the name}
-- include placement-common.lua
local node = ARGV[1]
local held = redis.call('HGET', at .. 'nodes', node)
if held and not redis.call('ZSCORE', at .. 'dead', node) and cjson.decode(held).instance ~= cjson.decode(ARGV[2]).instance then
  local epoch, beat = redis.call('HGET', at .. 'epochs', node) or '', redis.call('ZSCORE', at .. 'beats', node) or '0'
  if epoch ~= ARGV[4] or beat ~= ARGV[5] then return { 0, held, epoch, beat, now() - tonumber(beat) } end
end
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
return { 1, epoch }
