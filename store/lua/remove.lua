#!lua flags=allow-oom
-- Removes some clients of a session, and in the last step the session itself, so that a removal cut short can be done again.
-- The session gone already: nothing happens.
--
-- KEYS  meta, clients, state, then all keys of some clients
-- ARGV  token, 1 for the last step, then the clients' ids
if redis.call('EXISTS', KEYS[1]) == 0 then return 1 end
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end
if #KEYS > 3 then redis.call('UNLINK', unpack(KEYS, 4)) end
if #ARGV > 2 then redis.call('SREM', KEYS[2], unpack(ARGV, 3)) end
if ARGV[2] == '1' then redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3]) end
return 1
