#!lua flags=allow-oom
-- For each row in one step: the response is kept and its request goes. A request that is gone: nothing happens, so of two responses
-- to one request the first stays, and a purged client does not come back. A request that was given up leaves a dead letter in the same step.
--
-- allow-oom: work that is done is not thrown away because Redis is full; it frees the request. What it can add is bounded by the
-- requests that are outstanding, and of those there come no more while append is refused.
--
-- KEYS  meta, state, dead, letters, then client, requests, responses of each client
-- ARGV  token, changes of the custom broker's map, then for each client: rows, then seq, isFault 0|1 and row of each; then the most dead letters that are
--       kept, and of each new one index of the client, seq, clientId and row
-- gives writes, then index of the client (0 …), seq and place of each row that was kept
-- include owner.lua
-- include state.lua
-- include letters.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local kept, grown, arg = { 0 }, 0, 3
for c = 1, (#KEYS - 4) / 3 do arg = arg + 1 + tonumber(ARGV[arg]) * 3 end
local hasLetters, places = #ARGV > arg, {}
arg = 3
for c = 0, (#KEYS - 4) / 3 - 1 do
  local client, requests, responses = KEYS[5 + c * 3], KEYS[6 + c * 3], KEYS[7 + c * 3]
  local counts = redis.call('HMGET', client, 'responses', 'faults')
  local at, faults = tonumber(counts[1] or 0), tonumber(counts[2] or 0)
  local gone, come, seen, size = {}, {}, {}, 0
  local last = arg + tonumber(ARGV[arg]) * 3
  for i = arg + 1, last, 3 do
    local seq = ARGV[i]
    local length = seen[seq] and 0 or redis.call('HSTRLEN', requests, seq)
    if length > 0 then
      seen[seq] = true
      gone[#gone + 1] = seq
      come[#come + 1] = at
      come[#come + 1] = ARGV[i + 2]
      size = size + #ARGV[i + 2] - length
      kept[#kept + 1], kept[#kept + 2], kept[#kept + 3] = c, tonumber(seq), at
      if hasLetters then places[c .. ' ' .. seq] = at end
      at = at + 1
      if ARGV[i + 1] == '1' then faults = faults + 1 end
    end
  end
  arg = last + 1
  if #gone > 0 then
    inPieces('HSET', responses, come, 4000)
    inPieces('HDEL', requests, gone, 4000)
    redis.call('HSET', client, 'responses', at, 'faults', faults)
    redis.call('HINCRBY', client, 'bytes', size)
    grown = grown + size
  end
end
if hasLetters then
  local items = {}
  for i = arg + 1, #ARGV, 4 do
    local at = places[ARGV[i] .. ' ' .. ARGV[i + 1]]
    if at then items[#items + 1], items[#items + 2], items[#items + 3] = at, ARGV[i + 2], ARGV[i + 3] end
  end
  grown = grown + keepLetters(KEYS[1], KEYS[3], KEYS[4], tonumber(ARGV[arg]), items)
end
keepState(KEYS[2], ARGV[2])
if #kept == 1 then
  kept[1] = tonumber(redis.call('HGET', KEYS[1], 'writes') or 0)
else
  redis.call('HINCRBY', KEYS[1], 'bytes', grown)
  kept[1] = moved(KEYS[1])
end
return kept
