#!lua flags=allow-oom
-- A plan becomes the state, in one step, if the snapshot that it was made from is still the state; otherwise nothing happens.
--
-- KEYS  version
-- ARGV  version of the snapshot, new version (in the ids of the new tasks), ISO time, plan as JSON:
--       {starts: [task], cancels: [{node, id, why}], finishes: the same, dead: [{node, epoch, beat, why}]}
-- gives 1 committed, 0 refused
-- include placement-common.lua
local iso, plan = ARGV[3], cjson.decode(ARGV[4])
if version() ~= ARGV[1] then return 0 end
for _, dead in ipairs(plan.dead) do
  -- It beat meanwhile: it is not dead, and what the plan put in its place must not run.
  if redis.call('ZSCORE', at .. 'beats', dead.node) ~= dead.beat or redis.call('HGET', at .. 'epochs', dead.node) ~= dead.epoch then return 0 end
end
bump(ARGV[2])

for _, dead in ipairs(plan.dead) do
  endAll(dead.node, 'Failed', iso, dead.why)
  redis.call('HSET', at .. 'epochs', dead.node, ARGV[2])
  redis.call('ZADD', at .. 'dead', now(), dead.node)
  redis.call('ZREM', at .. 'beats', dead.node)
  redis.call('SREM', at .. 'leaving', dead.node)
end
local touched = {}
local function set (changes, state)
  for _, change in ipairs(changes) do
    local tasks = at .. 'tasks:' .. change.node
    local json = redis.call('HGET', tasks, change.id)
    if json then
      local task = cjson.decode(json)
      task.state, task.at = state, iso
      redis.call('HSET', tasks, change.id, cjson.encode(task))
      tell(task)
      touched[change.node] = true
    end
  end
end
set(plan.cancels, 'Canceling')
set(plan.finishes, 'Finishing')
for _, task in ipairs(plan.starts) do
  redis.call('HSET', at .. 'tasks:' .. task.node, task.id, cjson.encode(task))
  tell(task, true)
  touched[task.node] = true
end
flush()
for node in pairs(touched) do wake(node) end
return 1
