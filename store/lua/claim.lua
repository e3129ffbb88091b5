#!lua flags=allow-oom
-- Takes ownership of a session. From here on every move of an earlier owner is refused.
-- Sent again with the same uuid it gives the same token.
--
-- KEYS  meta
-- ARGV  uuid, mode: `create` (refused with EXISTS when the session is there) or `raise` (refused with LOST when it is not)
-- gives token, writes, bytes
local meta, uuid, mode = KEYS[1], ARGV[1], ARGV[2]
local token = redis.call('HGET', meta, 'token')
if not (token and string.sub(token, -#uuid) == uuid) then
  local there = redis.call('EXISTS', meta) == 1
  if mode == 'create' and there then return redis.error_reply('EXISTS the session is there already') end
  if mode == 'raise' and not there then return redis.error_reply('LOST nothing of this session is there') end
  token = string.format('%d:%s', redis.call('HINCRBY', meta, 'number', 1), uuid)
  redis.call('HSET', meta, 'token', token)
end
return { token, tonumber(redis.call('HGET', meta, 'writes') or 0), tonumber(redis.call('HGET', meta, 'bytes') or 0) }
