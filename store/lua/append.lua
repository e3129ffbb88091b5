#!lua
-- Keeps requests of one client, all or none. A request that was appended before changes nothing, also when it has been
-- settled, discarded or released since: it never comes back to life.
--
-- Seqs mostly come in order, so `appended`, the highest, says what has been here. Where a batch leaves some out (an earlier
-- one failed), they are noted in `gaps` as `from-to,…`, and only a seq from a gap is let in late.
--
-- Without allow-oom: at maxmemory Redis refuses to start this script. The quota is checked before anything is written.
--
-- KEYS  meta, clients, client, requests, state
-- ARGV  token, clientId, displayId, quota in bytes (0: none), highest batch id, changes of the custom broker's map, then seq and row of each request
-- gives writes, and 0 or, when the quota does not allow it and nothing was kept, the bytes that the session would have
-- include owner.lua
-- include state.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local client = redis.call('HMGET', KEYS[3], 'appended', 'gaps', 'batch')
local top, gaps, batch = tonumber(client[1] or 0), client[2] or '', tonumber(client[3] or -1)

local function takeFromGaps (seq)
  local left, taken = {}, false
  for from, to in string.gmatch(gaps, '(%d+)%-(%d+)') do
    from, to = tonumber(from), tonumber(to)
    if seq < from or seq > to then
      left[#left + 1] = string.format('%.0f-%.0f', from, to)
    else
      taken = true
      if from < seq then left[#left + 1] = string.format('%.0f-%.0f', from, seq - 1) end
      if seq < to then left[#left + 1] = string.format('%.0f-%.0f', seq + 1, to) end
    end
  end
  if taken then gaps = table.concat(left, ',') end
  return taken
end

local fresh, size = {}, 0
for i = 7, #ARGV, 2 do
  local seq, isNew = tonumber(ARGV[i]), true
  if seq > top then
    if seq > top + 1 then gaps = gaps .. (gaps == '' and '' or ',') .. string.format('%.0f-%.0f', top + 1, seq - 1) end
    top = seq
  else
    isNew = gaps ~= '' and takeFromGaps(seq)
  end
  if isNew then
    fresh[#fresh + 1] = ARGV[i]
    fresh[#fresh + 1] = ARGV[i + 1]
    size = size + #ARGV[i + 1]
  end
end
local function writes () return tonumber(redis.call('HGET', KEYS[1], 'writes') or 0) end
if #fresh == 0 then return { writes(), 0 } end

local quota = tonumber(ARGV[4])
if quota > 0 then
  local bytes = tonumber(redis.call('HGET', KEYS[1], 'bytes') or 0) + size
  if bytes > quota then return { writes(), bytes } end
end

inPieces('HSET', KEYS[4], fresh, 4000)
if not client[1] then
  redis.call('SADD', KEYS[2], ARGV[2])
  redis.call('HSETNX', KEYS[3], 'display', ARGV[3])
end
redis.call('HSET', KEYS[3], 'appended', string.format('%.0f', top), 'gaps', gaps, 'batch', math.max(batch, tonumber(ARGV[5])))
redis.call('HINCRBY', KEYS[3], 'bytes', size)
redis.call('HINCRBY', KEYS[1], 'bytes', size)
keepState(KEYS[5], ARGV[6])
return { moved(KEYS[1]), 0 }
