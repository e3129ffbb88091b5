#!lua flags=allow-oom
-- Takes workers off the list. With `expired` only those whose record has run out: a beat between our looking and this keeps its worker.
--
-- KEYS  set of all workers, then the record of each
-- ARGV  `gone` or `expired`, then the workers' ids
for i = 2, #KEYS do
  if ARGV[1] == 'gone' then redis.call('DEL', KEYS[i]) end
  if redis.call('EXISTS', KEYS[i]) == 0 then redis.call('SREM', KEYS[1], ARGV[i]) end
end
return 1
