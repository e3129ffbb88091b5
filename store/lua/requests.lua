#!lua flags=no-writes
-- Requests of one client by seq; null for one that is gone.
--
-- KEYS  meta, requests
-- ARGV  token, seqs
-- gives a row for each seq
-- include owner.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end

local rows = {}
for i = 2, #ARGV do rows[#rows + 1] = redis.call('HGET', KEYS[2], ARGV[i]) end
return rows
