-- s11.lua releases the lock of baseline S1.1, but only its own: the lease may be
-- over, and the lock another's by now.
--
-- KEYS[1] the lock
-- ARGV[1] the holder
--
-- Returns 1 when the lock was released, 0 when another holds it.

if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
