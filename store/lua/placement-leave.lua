#!lua flags=allow-oom
-- A node says goodbye. First: it takes nothing new and its tasks are being canceled, so their sessions stop sending. At last: it is gone, and what is left fails.
--
-- KEYS  version
-- ARGV  node, epoch, ISO time, at last 0|1
-- gives 1, or 0 when the epoch is over
-- include placement-common.lua
local node, iso, why = ARGV[1], ARGV[3], 'the node manager of ' .. ARGV[1] .. ' left'
if redis.call('HGET', at .. 'epochs', node) ~= ARGV[2] then return 0 end
if ARGV[4] == '1' then
  endAll(node, 'Failed', iso, why)
  for _, hash in ipairs({ 'nodes', 'epochs', 'news' }) do redis.call('HDEL', at .. hash, node) end
  for _, zset in ipairs({ 'beats', 'dead' }) do redis.call('ZREM', at .. zset, node) end
  redis.call('SREM', at .. 'leaving', node)
else
  redis.call('SADD', at .. 'leaving', node)
  local tasks = at .. 'tasks:' .. node
  for _, json in ipairs(redis.call('HVALS', tasks)) do
    local task = cjson.decode(json)
    if task.state ~= 'Canceling' then
      task.state, task.at = 'Canceling', iso
      redis.call('HSET', tasks, task.id, cjson.encode(task))
      tell(task)
    end
  end
end
flush()
bump()
changed()
return 1
