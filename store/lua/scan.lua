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

-- Few at a time stay in the processor's cache.
local PIECE = 50
local find, sub, byte, match = string.find, string.sub, string.byte, string.match
local one, other, wanted, faults = ARGV[5], ARGV[6], ARGV[7], ARGV[8] == '1'

-- Plain finds from a place on, and no piece of a row made: most rows are not what is looked for.
local function isIn (row, text, first, last)
  local at = find(row, text, first, true)
  return at and at <= last and at
end

local function dataEnd (row, headEnd)
  local at = isIn(row, '"userData":', 15, headEnd)
  return at and headEnd + tonumber(match(row, '^%d+', at + 11)) or headEnd
end

local function mayHave (row, first, last)
  if last < first then return false end
  if isIn(row, wanted, first, last - #wanted + 1) or isIn(row, '&', first, last) or isIn(row, '\r', first, last) then return true end
  -- A start tag and an end tag, and nothing else that could interrupt the text.
  local second = isIn(row, '<', first + 1, last)
  return second and isIn(row, '<', second + 1, last)
end

local found = { to > least and to or -1, from - to }
local function look (name, row)
  local a, b, c, d = byte(row, 11, 14)
  local headEnd = 14 + ((a * 256 + b) * 256 + c) * 256 + d
  if faults and not isIn(row, '"isFault":true', 15, headEnd) then return end
  if one ~= '' and not isIn(row, one, 15, headEnd) and not isIn(row, other, 15, headEnd) then return end
  local last = dataEnd(row, headEnd)
  if wanted ~= '' and not mayHave(row, headEnd + 1, last) then return end
  found[#found + 1] = name
  found[#found + 1] = sub(row, 1, last)
end

for high = from - 1, to, -PIECE do
  local names = {}
  for name = high, math.max(to, high - PIECE + 1), -1 do names[#names + 1] = name end
  local rows = redis.call('HMGET', KEYS[3], unpack(names))
  for i, name in ipairs(names) do
    if rows[i] then look(name, rows[i]) end
  end
end
return found
