#!lua flags=allow-oom
-- A place in a pool of sessions for a new one, or, when all are taken, the member whose turn it is. Sent again by the same session: its place is still its own.
--
-- KEYS  members (list of session ids, whose turn it is next first)
-- ARGV  id of the new session, size of the pool
-- gives false: the new one has a place, or a member's id
if redis.call('LPOS', KEYS[1], ARGV[1]) then return false end
if redis.call('LLEN', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('RPUSH', KEYS[1], ARGV[1])
  return false
end
return redis.call('LMOVE', KEYS[1], KEYS[1], 'LEFT', 'RIGHT')
