#!lua flags=allow-oom
-- The session wants nothing any more: the next plan cancels its tasks. Forgotten: its stream goes too, and nothing brings it back.
--
-- KEYS  version
-- ARGV  session, forget 0|1, ms that the stream is kept otherwise
-- include placement-common.lua
local session = ARGV[1]
if dropDemand(session, ARGV[3]) then
  bump()
  changed()
end
if ARGV[2] == '1' then redis.call('DEL', tag .. 'events:' .. session) end
