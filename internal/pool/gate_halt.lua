#!lua flags=allow-oom
-- gate_halt.lua ends an epoch of a lane for everybody, because somebody has found that
-- the lane lacks what he was told (rule R9). A lane that is not in this epoch, or has
-- none, stays as it is: nothing with this epoch can change it anyway.
--
-- KEYS[1] epoch of the lane
--
-- ARGV[1] epoch
-- ARGV[2] reason; the first one stays
--
-- Returns 1 when the epoch is halted, else 0.

if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
redis.call('HSETNX', KEYS[1], 'reason', ARGV[2])
redis.call('HSET', KEYS[1], 'gate', 'halted')
return 1
