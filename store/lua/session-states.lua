#!lua flags=allow-oom
-- How many sessions are in each state. Counted out of the records when nobody has asked for `kept` ms, so that it heals whatever happens to it; from then on
-- each change of a record changes its number too (session-create, -update, -remove), and asking costs the same however many sessions there are.
--
-- KEYS  states (hash: state as JSON → sessions; absent: nobody has asked), index
-- ARGV  beginning of a record's key, before the session id; kept
-- gives states and numbers
if redis.call('EXISTS', KEYS[1]) == 0 then
  local counted = {}
  for _, session in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    local state = redis.call('HGET', ARGV[1] .. session, 'state')
    if state then counted[state] = (counted[state] or 0) + 1 end
  end
  for state, count in pairs(counted) do redis.call('HSET', KEYS[1], state, count) end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return redis.call('HGETALL', KEYS[1])
