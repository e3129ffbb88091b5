-- Dead letters of a session. dead: sorted set, score = the letter's number, member = `<number> <place> <d|r> <clientId>` (d: dead, r: being run again).
-- letters: hash, number → row. They count in the session's bytes and not in their client's.
local function letterOf (dead, number)
  return redis.call('ZRANGEBYSCORE', dead, number, number)[1]
end

local function dropLetter (dead, letters, member)
  local number = string.match(member, '^%d+')
  local size = redis.call('HSTRLEN', letters, number)
  redis.call('HDEL', letters, number)
  redis.call('ZREM', dead, member)
  return size
end

-- `items`: place, clientId and row of each. The oldest go when there are more than `most`, but for those that are being run again. Gives the bytes that came.
local function keepLetters (meta, dead, letters, most, items)
  local grown = 0
  for i = 1, #items, 3 do
    local number = string.format('%.0f', redis.call('HINCRBY', meta, 'letters', 1))
    redis.call('ZADD', dead, number, string.format('%s %.0f d %s', number, items[i], items[i + 1]))
    redis.call('HSET', letters, number, items[i + 2])
    grown = grown + #items[i + 2]
  end
  local over, dropped = redis.call('ZCARD', dead) - most, 0
  if over > 0 then
    for _, member in ipairs(redis.call('ZRANGE', dead, 0, -1)) do
      if dropped == over then break end
      if string.match(member, '^%d+ %d+ d ') then
        grown = grown - dropLetter(dead, letters, member)
        dropped = dropped + 1
      end
    end
    redis.call('HINCRBY', meta, 'lettersDropped', dropped)
  end
  return grown
end
