#!lua
-- reject.lua ends a packet whose charge was declined: funding -> rejected.
--
-- KEYS[1] packet hash, or its tombstone
--
-- ARGV[1] failure as JSON
--
-- Returns {outcome, state}. Outcomes: done (also when it was rejected before:
-- the first failure stays); gone; state (another state, nothing done).

local state = redis.call('HGET', KEYS[1], 'state')
if not state then return {'gone', ''} end
if state == 'rejected' then return {'done', state} end
if state ~= 'funding' then return {'state', state} end
redis.call('HSET', KEYS[1], 'state', 'rejected', 'failure', ARGV[1])
return {'done', 'rejected'}
