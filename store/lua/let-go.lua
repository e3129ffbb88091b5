#!lua flags=allow-oom
-- Gives the token back; the data stays. Sent again, or when another owner has come: nothing happens.
--
-- KEYS  meta
-- ARGV  token
if redis.call('HGET', KEYS[1], 'token') == ARGV[1] then redis.call('HDEL', KEYS[1], 'token') end
return 1
