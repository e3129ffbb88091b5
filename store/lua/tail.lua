#!lua flags=no-writes
-- How far the store has got, for the owner to compare with what was acknowledged to it.
--
-- KEYS  meta, then client of each
-- ARGV  token
-- gives for each client: appended, committedSeq, responses (0 for a client that is not there)
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end
local tail = {}
for i = 2, #KEYS do
  local row = redis.call('HMGET', KEYS[i], 'appended', 'committedSeq', 'responses')
  for field = 1, 3 do tail[#tail + 1] = tonumber(row[field] or 0) end
end
return tail
