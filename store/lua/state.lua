-- The durable map of a custom broker: field = name, value = `<n> <JSON>`, an empty JSON for a name that was removed. Each change has a number that only
-- grows, so a change that comes again, or late after a newer one of its name, changes nothing.
--
-- changes: JSON, [[name, n, value or null], …]; '' for none.
local function keepState (key, changes)
  if changes == '' then return end
  for _, change in ipairs(cjson.decode(changes)) do
    local known = redis.call('HGET', key, change[1])
    if not known or tonumber(string.match(known, '^%d+')) < change[2] then
      redis.call('HSET', key, change[1], string.format('%.0f %s', change[2], change[3] == cjson.null and '' or change[3]))
    end
  end
end
