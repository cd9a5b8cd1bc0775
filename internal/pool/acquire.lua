#!lua flags=allow-oom
-- acquire.lua takes a worker slot that is free.
--
-- KEYS[1] lease of the slot
--
-- ARGV[1] token of the caller
-- ARGV[2] duration of the lease in ms
--
-- Returns 1 when the caller holds the slot (also when the call is repeated), else 0.

if redis.call('GET', KEYS[1]) == ARGV[1] then return 1 end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return 0
