#!lua flags=allow-oom
-- Forgets uncommitted requests of one client: those behind a seq and without a response. Committed ones stay, whatever is asked.
-- What is left out of the order so far (`gaps`) is closed behind that seq too: nothing of the old batch can come later.
--
-- KEYS  meta, client, requests
-- ARGV  token, seq
-- gives writes
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local client = redis.call('HMGET', KEYS[2], 'appended', 'committedSeq', 'gaps')
local after, freed, gone = math.max(tonumber(ARGV[2]), tonumber(client[2] or 0)), 0, {}
for seq = after + 1, tonumber(client[1] or 0) do
  local length = redis.call('HSTRLEN', KEYS[3], string.format('%.0f', seq))
  if length > 0 then
    freed = freed + length
    gone[#gone + 1] = string.format('%.0f', seq)
  end
end
local gaps = {}
for from, to in string.gmatch(client[3] or '', '(%d+)%-(%d+)') do
  if tonumber(from) <= after then gaps[#gaps + 1] = string.format('%.0f-%.0f', tonumber(from), math.min(tonumber(to), after)) end
end
gaps = table.concat(gaps, ',')
if #gone == 0 and gaps == (client[3] or '') then return tonumber(redis.call('HGET', KEYS[1], 'writes') or 0) end
inPieces('HDEL', KEYS[3], gone, 4000)
redis.call('HSET', KEYS[2], 'gaps', gaps)
redis.call('HINCRBY', KEYS[2], 'bytes', 0 - freed)
redis.call('HINCRBY', KEYS[1], 'bytes', 0 - freed)
return moved(KEYS[1])
