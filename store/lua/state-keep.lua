#!lua
-- Changes of a custom broker's durable map that go with no batch.
--
-- KEYS  meta, state
-- ARGV  token, changes
-- gives writes
-- include owner.lua
-- include state.lua
local refused = refusal(KEYS[1], ARGV[1])
if refused then return refused end
keepState(KEYS[2], ARGV[2])
return moved(KEYS[1])
