#!lua flags=allow-oom
-- After a lost connection: the same owner takes a new token, so that nothing which it sent over the old connection
-- and which Redis has yet to read can land any more. Sent again it changes nothing.
--
-- KEYS  meta
-- ARGV  new token, then every token that may be ours (a renewal whose answer was lost may have landed)
-- gives writes, bytes
local meta, token = KEYS[1], ARGV[1]
local owner = redis.call('HGET', meta, 'token')
local ours = owner == token
for i = 2, #ARGV do ours = ours or owner == ARGV[i] end
if not ours then
  if redis.call('EXISTS', meta) == 0 then return redis.error_reply('LOST nothing of this session is there') end
  return redis.error_reply('FENCED the session belongs to ' .. (owner or 'nobody'))
end
if owner ~= token then redis.call('HSET', meta, 'token', token) end
return { tonumber(redis.call('HGET', meta, 'writes') or 0), tonumber(redis.call('HGET', meta, 'bytes') or 0) }
