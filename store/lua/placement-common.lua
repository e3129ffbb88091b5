-- Shared by the placement scripts. KEYS[1] is always <tag>:placement:version; the other names are derived from it, since which sessions and nodes a
-- script meets is known only inside it. All have the same hash tag and so the same slot.
--
--   <tag>:placement:version       the snapshot's version: max(version + 1, ms of Redis' clock), so a Redis that lost its last second uses no number twice
--   <tag>:placement:demands       hash   session → Demand
--   <tag>:placement:asserted      zset   session → ms when its broker last said so
--   <tag>:placement:failures      hash   session → {node: {n, at}}: tasks of it that failed there, and when the last one did
--   <tag>:placement:nodes         hash   node → record; with :epochs, :news (hashes), :beats (zset, ms), :draining, :leaving (sets), :dead (zset, ms)
--   <tag>:placement:tasks:<node>  hash   task id → task
--   <tag>:placement:passes        hash   any, sweep → ms of the last one
--   <tag>:events:<session>        stream of TaskStateChanged: field tasks = array
-- and two kinds of channel: <tag>:placement:changed (heads: plan soon), <tag>:placement:wake:<node> (fetch your list).
local at = string.sub(KEYS[1], 1, -#'version' - 1)
local tag = string.sub(at, 1, -#'placement:' - 1)

local function now ()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Lua writes large numbers as 1.7e+12.
local function whole (n) return string.format('%.0f', n) end

local function version () return redis.call('GET', KEYS[1]) or '0' end

-- The snapshot is another one from here on: a plan made from the old one is refused.
local function bump (to)
  local fresh = whole(math.max(tonumber(version()) + 1, tonumber(to or now())))
  redis.call('SET', KEYS[1], fresh)
  return fresh
end

local function changed () redis.call('PUBLISH', at .. 'changed', '') end
local function wake (node) redis.call('PUBLISH', at .. 'wake:' .. node, '') end

local ENDED = { Finished = true, Failed = true, Canceled = true }

-- What each session is told at the end of the script: one entry, in the order of the calls.
local told, order = {}, {}
local function tell (task, creates)
  local entry = told[task.sessionId]
  if not entry then
    entry = { creates = false }
    told[task.sessionId] = entry
    order[#order + 1] = task.sessionId
  end
  entry[#entry + 1] = cjson.encode(task)
  entry.creates = entry.creates or creates
end
local function flush ()
  for _, session in ipairs(order) do
    local entry, stream = told[session], tag .. 'events:' .. session
    local tasks = '[' .. table.concat(entry, ',') .. ']'
    if entry.creates then
      redis.call('XADD', stream, 'MAXLEN', '~', 10000, '*', 'tasks', tasks)
      redis.call('PERSIST', stream)
    else
      -- NOMKSTREAM: the end of a task must not bring back the stream of a session that was forgotten.
      redis.call('XADD', stream, 'NOMKSTREAM', 'MAXLEN', '~', 10000, '*', 'tasks', tasks)
    end
  end
end

local function ended (task, state, iso, why)
  task.state, task.at = state, iso
  task.exit = { code = cjson.null, signal = cjson.null, stderr = '', why = why }
  return task
end

-- Every task of the node ends in this state; nothing of them stays in the table.
local function endAll (node, state, iso, why)
  local tasks = redis.call('HVALS', at .. 'tasks:' .. node)
  for _, json in ipairs(tasks) do tell(ended(cjson.decode(json), state, iso, why)) end
  redis.call('DEL', at .. 'tasks:' .. node)
end

local function dropDemand (session, keepMs)
  redis.call('HDEL', at .. 'failures', session)
  redis.call('ZREM', at .. 'asserted', session)
  -- Whoever watches may still want the ends of its tasks; a session that is never forgotten leaves nothing for ever.
  redis.call('PEXPIRE', tag .. 'events:' .. session, keepMs)
  return redis.call('HDEL', at .. 'demands', session) == 1
end
