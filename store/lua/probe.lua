#!lua
-- Writes nothing, but may: Redis refuses to start it whenever it refuses writes (full, read-only, without replicas, disk errors), and leaves no key.
return 1
