#!lua flags=allow-oom
-- renew.lua extends the lease of a worker slot. An expired lease is not renewed: another
-- worker may have taken over its hand-offs.
--
-- KEYS[1] lease of the slot
--
-- ARGV[1] token of the caller
-- ARGV[2] duration of the lease in ms, from now
--
-- Returns 1 when the caller still holds the slot, else 0.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
