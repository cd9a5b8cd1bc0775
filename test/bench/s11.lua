-- s11.lua gives back the lock of baseline S1.1, but only its own: the lease may be
-- over, and the lock another's by now.
--
-- KEYS[1] the lock
-- ARGV[1] who holds it
--
-- Returns 1 when it was given back, 0 when it was no longer his.

if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
