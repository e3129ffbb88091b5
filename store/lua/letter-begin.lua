#!lua
-- A dead letter is to run again, if the place of its fault is still there.
--
-- KEYS  meta, dead, letters, responses
-- ARGV  token, number
-- gives writes, and 1: it is marked, 0: there is no such letter, 2: the place is gone
-- include owner.lua
-- include letters.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local writes = tonumber(redis.call('HGET', KEYS[1], 'writes') or 0)
local member = letterOf(KEYS[2], ARGV[2])
if not member then return { writes, 0 } end
local place, state, clientId = string.match(member, '^%d+ (%d+) (%l) (.*)$')
if redis.call('HEXISTS', KEYS[4], place) == 0 then return { writes, 2 } end
if state == 'r' then return { writes, 1 } end
redis.call('ZREM', KEYS[2], member)
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[2] .. ' ' .. place .. ' r ' .. clientId)
return { moved(KEYS[1]), 1 }
