#!lua flags=allow-oom
-- Removes some clients of a session, and in the last step the session itself, so that a removal cut short can be done again.
-- The session gone already: nothing happens.
--
-- KEYS  meta, clients, state, dead, letters, then all keys of some clients
-- ARGV  token, 1 for the last step, then the clients' ids
if redis.call('EXISTS', KEYS[1]) == 0 then return 1 end
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end
if #KEYS > 5 then redis.call('UNLINK', unpack(KEYS, 6)) end
if #ARGV > 2 then redis.call('SREM', KEYS[2], unpack(ARGV, 3)) end
if ARGV[2] == '1' then redis.call('UNLINK', unpack(KEYS, 1, 5)) end
return 1
