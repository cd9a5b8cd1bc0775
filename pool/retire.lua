#!lua
-- retire.lua removes the pool of a packet whose books are closed and leaves a
-- tombstone, so that a late repeat of the create request still meets it (rule R7).
--
-- KEYS[1] packet hash, or its tombstone
-- KEYS[2] shares
-- KEYS[3] winners
-- KEYS[4] eligible user ids
-- KEYS[5] live packets of the lane
--
-- ARGV[1] packet id
-- ARGV[2] life of the tombstone in ms
--
-- Returns {outcome, state}. Outcomes: done (also when there is nothing left to
-- retire); state (grabs are still possible, nothing done).

local f = redis.call('HMGET', KEYS[1], 'state', 'retired', 'body_hash', 'first')
local state = f[1]
if state and not f[2] then
  if state ~= 'closing' and state ~= 'rejected' then return {'state', state} end
  state = state == 'closing' and 'closed' or state
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'retired', '1', 'state', state, 'body_hash', f[3])
  if f[4] then redis.call('HSET', KEYS[1], 'first', f[4]) end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4])
redis.call('ZREM', KEYS[5], ARGV[1])
return {'done', state or ''}
