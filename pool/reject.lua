#!lua
-- reject.lua ends a packet whose charge was declined: funding -> rejected.
--
-- KEYS[1] packet hash, or its tombstone
-- KEYS[2] staged packets of the lane; a rejected one is in MySQL
--
-- ARGV[1] failure as JSON
--
-- Returns {outcome, state}. Outcomes: done (also when it was rejected before:
-- the first failure stays); gone; state (another state, nothing done).

local f = redis.call('HMGET', KEYS[1], 'state', 'app', 'sender', 'created_at', 'id')
local state = f[1]
if not state then return {'gone', ''} end
if state == 'rejected' then return {'done', state} end
if state ~= 'funding' then return {'state', state} end
redis.call('HSET', KEYS[1], 'state', 'rejected', 'failure', ARGV[1])
local app, sender = f[2], f[3]
local place = '\0' .. string.format('%015.0f', f[4]) .. '\0' .. f[5]
redis.call('ZREM', KEYS[2], app .. '\0' .. place, app .. '\0' .. sender .. place)
return {'done', 'rejected'}
