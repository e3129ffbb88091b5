#!lua flags=no-writes
-- Responses of one client from a place on, as many as asked for and as fit, and one in any case. Sizes are looked at before a row is touched.
--
-- KEYS  meta, client, responses
-- ARGV  token, from, count, bytes
-- gives place and row of each
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local client = redis.call('HMGET', KEYS[2], 'released', 'responses')
local from = math.max(tonumber(ARGV[2]), tonumber(client[1] or 0))
local last = math.min(from + tonumber(ARGV[3]), tonumber(client[2] or 0)) - 1
local left, rows = tonumber(ARGV[4]), {}
for at = from, last do
  left = left - redis.call('HSTRLEN', KEYS[3], at)
  if left < 0 and at > from then break end
  rows[#rows + 1] = at
  rows[#rows + 1] = redis.call('HGET', KEYS[3], at)
end
return rows
