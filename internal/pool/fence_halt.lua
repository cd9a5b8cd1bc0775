#!lua flags=allow-oom
-- fence_halt.lua ends an epoch of a lane for every process, because the lane lacks
-- acknowledged changes (R9). A lane in another epoch, or in none, stays unchanged: no
-- call with this epoch can change it.
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
