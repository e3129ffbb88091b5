#!lua flags=no-writes
-- Looks at requests (by seq) or responses (by place) of one client, newest first, and gives those that may be what is looked for, without their bodies.
-- The layout of a row is that of store/pack.ts. User data is XML: text in it is found as it stands; where it could stand there in another way (references,
-- CDATA, elements inside, other line ends) the row is given for its reader to judge.
--
-- KEYS  meta, client, requests or responses
-- ARGV  token, 1 requests 0 responses, below, how many are looked at (at most 7000), one or the other in the head ('' any), text in the user data ('' any), only faults 0|1
-- gives where to go on (-1: nothing is before it), how many were looked at, then name and row up to the end of its user data of each
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local client = redis.call('HMGET', KEYS[2], 'appended', 'released', 'responses')
local least, most = 1, tonumber(client[1] or 0) + 1
if ARGV[2] == '0' then least, most = tonumber(client[2] or 0), tonumber(client[3] or 0) end
local from = math.min(tonumber(ARGV[3]), most)
local to = math.max(least, from - tonumber(ARGV[4]))
if from <= to then return { -1, 0 } end

local names = {}
for at = from - 1, to, -1 do names[#names + 1] = string.format('%.0f', at) end
local rows = redis.call('HMGET', KEYS[3], unpack(names))

local find, sub, byte = string.find, string.sub, string.byte
local one, other, wanted, faults = ARGV[5], ARGV[6], ARGV[7], ARGV[8] == '1'

local function mayHave (row, first, last)
  if last < first then return false end
  local data = sub(row, first, last)
  if find(data, wanted, 1, true) or find(data, '[&\r]') then return true end
  -- A start tag and an end tag, and nothing else that could interrupt the text.
  return select(2, string.gsub(data, '<', '')) > 2
end

local found = { to > least and to or -1, from - to }
for i, name in ipairs(names) do
  local row = rows[i]
  if row then
    local a, b, c, d = byte(row, 11, 14)
    local headEnd = 14 + ((a * 256 + b) * 256 + c) * 256 + d
    local head = sub(row, 15, headEnd)
    local isIt = (not faults or find(head, '"isFault":true', 1, true)) and (one == '' or find(head, one, 1, true) or find(head, other, 1, true))
    if isIt then
      local dataEnd = headEnd + tonumber(string.match(head, '"userData":(%d+)') or 0)
      if wanted == '' or mayHave(row, headEnd + 1, dataEnd) then
        found[#found + 1] = name
        found[#found + 1] = sub(row, 1, dataEnd)
      end
    end
  end
end
return found
