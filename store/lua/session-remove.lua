#!lua flags=allow-oom
-- KEYS  record, index, served
-- ARGV  session id
redis.call('UNLINK', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
return 1
