#!lua flags=allow-oom
-- All that a plan is made from, read in one step. Unless it only looks, it sweeps first:
--
-- * If no pass has run for `gap` ms, the nodes (and brokers) are not to blame for beats that Redis could not take: everybody gets a fresh lease.
-- * Demands that no broker has asserted for `demandLease` ms are dropped.
-- * Nodes dead for `forget` ms are forgotten.
--
-- KEYS  version
-- ARGV  who: sweep, plan, fallback or look; gap, demandLease, forget, ms that streams of dropped sessions are kept
-- gives now, version, 1 if everybody got a fresh lease, dropped sessions, demands, failures (session, JSON, …),
--       nodes: id, record, epoch, beat (or time of death), draining 0|1 (2: it is leaving), dead 0|1, its tasks and its news (JSON or '') each
-- include placement-common.lua
local time, fresh, dropped = now(), 0, {}
local who, gap, demandLease, forget, keepMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local function members (key)
  local found = {}
  for _, member in ipairs(redis.call('SMEMBERS', key)) do found[member] = true end
  return found
end

if who ~= 'look' then
  local last = tonumber(redis.call('HGET', at .. 'passes', 'any') or 0)
  if time - last > gap then
    fresh = 1
    for _, zset in ipairs({ 'beats', 'asserted' }) do
      for _, member in ipairs(redis.call('ZRANGE', at .. zset, 0, -1)) do redis.call('ZADD', at .. zset, time, member) end
    end
  end
  redis.call('HSET', at .. 'passes', 'any', time)
  if who == 'sweep' then redis.call('HSET', at .. 'passes', 'sweep', time) end
  dropped = redis.call('ZRANGE', at .. 'asserted', '-inf', '(' .. whole(time - demandLease), 'BYSCORE')
  for _, session in ipairs(dropped) do dropDemand(session, keepMs) end
  for _, node in ipairs(redis.call('ZRANGE', at .. 'dead', '-inf', '(' .. whole(time - forget), 'BYSCORE')) do
    for _, hash in ipairs({ 'nodes', 'epochs', 'news' }) do redis.call('HDEL', at .. hash, node) end
    redis.call('ZREM', at .. 'dead', node)
    redis.call('SREM', at .. 'draining', node)
  end
  if #dropped > 0 then bump() end
end

local draining, leaving, nodes = members(at .. 'draining'), members(at .. 'leaving'), {}
local records = redis.call('HGETALL', at .. 'nodes')
for i = 1, #records, 2 do
  local id = records[i]
  local dead = redis.call('ZSCORE', at .. 'dead', id)
  nodes[#nodes + 1] = { id, records[i + 1], redis.call('HGET', at .. 'epochs', id), redis.call('ZSCORE', at .. 'beats', id) or dead or '0',
    leaving[id] and 2 or draining[id] and 1 or 0, dead and 1 or 0, redis.call('HVALS', at .. 'tasks:' .. id), redis.call('HGET', at .. 'news', id) or '' }
end
return { time, version(), fresh, dropped, redis.call('HVALS', at .. 'demands'), redis.call('HGETALL', at .. 'failures'), nodes }
