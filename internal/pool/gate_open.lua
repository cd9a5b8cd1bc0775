#!lua flags=allow-oom
-- gate_open.lua opens the gate of a lane in one epoch (rule R9), and raises its seq to
-- a floor. An open one stays open. One that was halted is never opened again: only a
-- later epoch is.
--
-- KEYS[1] epoch of the lane
--
-- ARGV[1] epoch
-- ARGV[2] lowest seq to go on from
--
-- Returns the outcome. Outcomes: done; other (another epoch, none, or halted; nothing
-- done).

local found = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'gate')
if found[1] ~= ARGV[1] or found[3] == 'halted' then return 'other' end
if tonumber(found[2]) < tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], 'seq', ARGV[2]) end
redis.call('HSET', KEYS[1], 'gate', 'open')
return 'done'
