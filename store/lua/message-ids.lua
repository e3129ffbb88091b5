#!lua flags=no-writes
-- The message ids of some requests: only heads leave Redis, not bodies. The row's layout is in store/pack.ts.
--
-- KEYS  meta, requests
-- ARGV  token, seqs
-- gives an id for each seq, '' where there is none
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local ids = {}
for i = 2, #ARGV do
  local row, id = redis.call('HGET', KEYS[2], ARGV[i]), ''
  if row and string.byte(row, 1) == 1 then
    local head = cjson.decode(string.sub(row, 15, 14 + struct.unpack('>I4', row, 11)))
    if type(head.messageId) == 'string' then id = head.messageId end
  end
  ids[#ids + 1] = id
end
return ids
