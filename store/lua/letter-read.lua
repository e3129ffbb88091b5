#!lua flags=no-writes
-- One dead letter.
--
-- KEYS  meta, dead, letters
-- ARGV  token, number
-- gives member and row; nothing when there is none
-- include owner.lua
-- include letters.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local member = letterOf(KEYS[2], ARGV[2])
if not member then return {} end
return { member, redis.call('HGET', KEYS[3], ARGV[2]) }
