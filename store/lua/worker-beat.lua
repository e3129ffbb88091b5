#!lua flags=allow-oom
-- KEYS  record, set of all workers
-- ARGV  worker id, record as JSON, lease in ms
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
return 1
