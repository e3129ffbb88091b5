#!lua flags=allow-oom
-- Changes fields of a record while a guard holds. Sent again after it has landed: gives the record without asking the guard again,
-- which may no longer hold because of this very change.
--
-- KEYS  record, served, states
-- ARGV  op, session id, guard on the worker (`any`, `nobody`, or the worker as JSON), number of states that are allowed (0: any), these states
--       as JSON, then fields and values; an empty value removes the field
-- gives fields and values of the new record, or false: it is gone, or the guard does not hold
local record, op = KEYS[1], ARGV[1]
local now = redis.call('HMGET', record, '_op', 'state', 'worker')
if not now[1] then return false end
if now[1] ~= op then
  if ARGV[3] == 'nobody' and now[3] then return false end
  if ARGV[3] ~= 'nobody' and ARGV[3] ~= 'any' and now[3] ~= ARGV[3] then return false end
  local states, holds = tonumber(ARGV[4]), tonumber(ARGV[4]) == 0
  for i = 5, 4 + states do holds = holds or ARGV[i] == now[2] end
  if not holds then return false end
  redis.call('HSET', record, '_op', op)
  for i = 5 + states, #ARGV, 2 do
    local field, value = ARGV[i], ARGV[i + 1]
    if value == '' then redis.call('HDEL', record, field) else redis.call('HSET', record, field, value) end
    if field == 'worker' then
      if value == '' then redis.call('HDEL', KEYS[2], ARGV[2]) else redis.call('HSET', KEYS[2], ARGV[2], value) end
    end
  end
  local state = redis.call('HGET', record, 'state')
  if state ~= now[2] and redis.call('EXISTS', KEYS[3]) == 1 then
    redis.call('HINCRBY', KEYS[3], now[2], -1)
    redis.call('HINCRBY', KEYS[3], state, 1)
  end
end
return redis.call('HGETALL', record)
