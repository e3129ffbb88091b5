-- Tasks of one session, and the last entry of its stream: what comes after it is not in them yet.
--
-- KEYS  version
-- ARGV  session
-- gives cursor, then a task each
-- include placement-common.lua
local session = ARGV[1]
local last = redis.call('XREVRANGE', tag .. 'events:' .. session, '+', '-', 'COUNT', 1)
local found = { last[1] and last[1][1] or '0-0' }
local mark = '"sessionId":' .. cjson.encode(session)
for _, node in ipairs(redis.call('HKEYS', at .. 'nodes')) do
  for _, json in ipairs(redis.call('HVALS', at .. 'tasks:' .. node)) do
    -- Looking for the text first spares decoding the whole grid.
    if string.find(json, mark, 1, true) and cjson.decode(json).sessionId == session then found[#found + 1] = json end
  end
end
return found
