#!lua flags=allow-oom
-- renew.lua prolongs the lease of a worker slot. A lease that ran out is not
-- taken back: by then another worker may have taken over its hand-offs.
--
-- KEYS[1] lease of the slot
--
-- ARGV[1] token of the caller
-- ARGV[2] life of the lease in ms, from now
--
-- Returns 1 when the caller still holds the slot, else 0.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
