-- The fence. A session belongs to one broker, which proves it by its whole token `number:uuid` (a bare number can be given
-- out twice after a fail-over). Gives the error reply to answer with, or nil when the caller is the owner.
local function refusal (meta, token)
  local owner = redis.call('HGET', meta, 'token')
  if owner == token then return nil end
  if redis.call('EXISTS', meta) == 0 then return redis.error_reply('LOST nothing of this session is there') end
  return redis.error_reply('FENCED the session belongs to ' .. (owner or 'nobody'))
end

-- Counts this move. A store that has been put back to an earlier state has fewer moves than its owner knows of.
local function moved (meta)
  return redis.call('HINCRBY', meta, 'writes', 1)
end

-- Variadic commands in pieces: Lua passes at most about 8000 arguments.
local function inPieces (command, key, values, step)
  for from = 1, #values, step do
    redis.call(command, key, unpack(values, from, math.min(from + step - 1, #values)))
  end
end
