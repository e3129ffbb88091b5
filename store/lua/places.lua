#!lua flags=no-writes
-- Which requests the responses at some places answer.
--
-- KEYS  meta, responses
-- ARGV  token, first place, count
-- gives the seq of each place, 0 where nothing is kept any more
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end
local seqs = {}
for at = tonumber(ARGV[2]), tonumber(ARGV[2]) + tonumber(ARGV[3]) - 1 do
  local row = redis.call('HGET', KEYS[2], at)
  seqs[#seqs + 1] = row and struct.unpack('>d', row, 3) or 0
end
return seqs
