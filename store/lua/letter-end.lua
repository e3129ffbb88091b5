#!lua flags=allow-oom
-- What a dead letter came to that was run again: the response takes the fault's place in one step with the end of the letter, or with its being dead again.
-- Sent again after a lost answer it changes nothing and says the same.
--
-- KEYS  meta, dead, letters, client, responses
-- ARGV  token, number, place, isFault 0|1, row of the response, row of the letter that stays or ''
-- gives writes, and 1: the response is in its place, 0: there is no such letter any more, 2: the place is gone, and the letter is dead again
-- include owner.lua
-- include letters.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local writes = tonumber(redis.call('HGET', KEYS[1], 'writes') or 0)
local number, place = ARGV[2], ARGV[3]
local member = letterOf(KEYS[2], number)
local state, clientId
if member then state, clientId = string.match(member, '^%d+ %d+ (%l) (.*)$') end
if state ~= 'r' then return { writes, redis.call('HGET', KEYS[5], place) == ARGV[5] and 1 or 0 } end

local grown, size = 0, redis.call('HSTRLEN', KEYS[5], place)
local isDead = size == 0 or ARGV[6] ~= ''
if isDead then
  redis.call('ZREM', KEYS[2], member)
  redis.call('ZADD', KEYS[2], number, number .. ' ' .. place .. ' d ' .. clientId)
  if ARGV[6] ~= '' then
    grown = #ARGV[6] - redis.call('HSTRLEN', KEYS[3], number)
    redis.call('HSET', KEYS[3], number, ARGV[6])
  end
else
  grown = -dropLetter(KEYS[2], KEYS[3], member)
end
if size > 0 then
  redis.call('HSET', KEYS[5], place, ARGV[5])
  redis.call('HINCRBY', KEYS[4], 'bytes', #ARGV[5] - size)
  if ARGV[4] == '0' then redis.call('HINCRBY', KEYS[4], 'faults', -1) end
  grown = grown + #ARGV[5] - size
end
redis.call('HINCRBY', KEYS[1], 'bytes', grown)
return { moved(KEYS[1]), size > 0 and 1 or 2 }
