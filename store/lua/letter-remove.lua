#!lua flags=allow-oom
-- KEYS  meta, dead, letters
-- ARGV  token, number
-- gives writes, and 1 when there was such a letter
-- include owner.lua
-- include letters.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local member = letterOf(KEYS[2], ARGV[2])
if not member then return { tonumber(redis.call('HGET', KEYS[1], 'writes') or 0), 0 } end
redis.call('HINCRBY', KEYS[1], 'bytes', -dropLetter(KEYS[2], KEYS[3], member))
return { moved(KEYS[1]), 1 }
