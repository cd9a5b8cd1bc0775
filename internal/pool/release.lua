#!lua flags=allow-oom
-- release.lua gives a worker slot back, when the caller still holds it.
--
-- KEYS[1] lease of the slot
--
-- ARGV[1] token of the caller
--
-- Returns 1 when the lease was given back, else 0.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
