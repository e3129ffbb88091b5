#!lua flags=no-writes
-- Dead letters behind a number, of one client or of all: only heads leave Redis, not bodies. The row's layout is in store/pack.ts.
--
-- KEYS  meta, dead, letters
-- ARGV  token, number, how many, `=<clientId>` or '' for all
-- gives how many there are in all, how many were dropped, then member and head of each
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local found = { redis.call('ZCARD', KEYS[2]), tonumber(redis.call('HGET', KEYS[1], 'lettersDropped') or 0) }
local most = tonumber(ARGV[3]) * 2 + 2
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[2], '+inf')) do
  if #found >= most then break end
  if ARGV[4] == '' or '=' .. string.match(member, '^%d+ %d+ %l (.*)$') == ARGV[4] then
    local row = redis.call('HGET', KEYS[3], string.match(member, '^%d+'))
    found[#found + 1] = member
    found[#found + 1] = string.sub(row, 1, 14 + struct.unpack('>I4', row, 11))
  end
end
return found
