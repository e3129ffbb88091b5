#!lua flags=allow-oom
-- A node's beat: takes its reports, gives its task list, in one step. Said twice it does no harm: a report of what the table has already changes
-- nothing, and the end of a task that it no longer has (Redis lost it, the node was fenced) is only told to the session.
--
-- KEYS  version
-- ARGV  node, epoch, reports (JSON array of tasks), sessions that the node is prepared for (JSON array of ids), news of the node for people (JSON, or empty: none)
-- gives {0, instance that has the name now, or ''} when the epoch is over, else {1, tasks, demands of tasks to be started, those of the sessions that want
--       nothing any more, draining 0|1}
-- include placement-common.lua
local node, epoch, reports, prepared = ARGV[1], ARGV[2], cjson.decode(ARGV[3]), cjson.decode(ARGV[4] or '[]')
local tasks = at .. 'tasks:' .. node
local current = redis.call('HGET', at .. 'epochs', node) == epoch
local isOver = false

-- `ran`: its host took calls before it ended. Then the node can run the service, and only a moment is waited, not longer each time.
local function failed (task, ran)
  if redis.call('HEXISTS', at .. 'demands', task.sessionId) == 0 then return end
  local json, time = redis.call('HGET', at .. 'failures', task.sessionId), now()
  local failures = json and cjson.decode(json) or {}
  local before = failures[node]
  -- Two quiet minutes, twice the longest pause, and the node is forgiven.
  local again = not ran and before and time - before.at < 120000
  failures[node] = { n = again and before.n + 1 or 1, at = time }
  redis.call('HSET', at .. 'failures', task.sessionId, cjson.encode(failures))
end

for _, report in ipairs(reports) do
  local json = current and redis.call('HGET', tasks, report.id)
  local task = json and cjson.decode(json)
  if not task then
    if ENDED[report.state] then tell(report) end
  elseif ENDED[report.state] then
    redis.call('HDEL', tasks, report.id)
    tell(report)
    if report.state == 'Failed' then failed(report, task.state == 'Running' or task.state == 'Finishing') end
    isOver = true
  elseif task.state == 'Canceling' then
    -- Its host came up although it is not wanted any more; the session has been told so.
    task.pid, task.address, task.controller = report.pid, report.address, report.controller
    redis.call('HSET', tasks, report.id, cjson.encode(task))
  elseif task.state ~= report.state and (task.state == 'Dispatching' or report.state == 'Finishing') then
    redis.call('HSET', tasks, report.id, cjson.encode(report))
    tell(report)
  end
end
flush()
if isOver then changed() end

if not current then
  local record = redis.call('HGET', at .. 'nodes', node)
  return { 0, record and not redis.call('ZSCORE', at .. 'dead', node) and cjson.decode(record).instance or '' }
end
redis.call('ZADD', at .. 'beats', now(), node)
if ARGV[5] and ARGV[5] ~= '' then redis.call('HSET', at .. 'news', node, ARGV[5]) end
local list, demands, seen = redis.call('HVALS', tasks), {}, {}
for _, json in ipairs(list) do
  local task = cjson.decode(json)
  if task.state == 'Dispatching' and not seen[task.sessionId] then
    seen[task.sessionId] = true
    local demand = redis.call('HGET', at .. 'demands', task.sessionId)
    if demand then demands[#demands + 1] = demand end
  end
end
local over = {}
for _, session in ipairs(prepared) do
  if redis.call('HEXISTS', at .. 'demands', session) == 0 then over[#over + 1] = session end
end
return { 1, list, demands, over, redis.call('SISMEMBER', at .. 'draining', node) }
