#!lua flags=allow-oom
-- fence_open.lua opens the fence of a lane in one epoch (R9), and raises seq to a
-- minimum. An open fence stays open. A halted epoch never opens again, only a later one.
--
-- KEYS[1] epoch of the lane
--
-- ARGV[1] epoch
-- ARGV[2] minimum of seq
--
-- Returns the outcome. Outcomes: done; other (another epoch, none, or halted; nothing
-- changed).

local found = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'gate')
if found[1] ~= ARGV[1] or found[3] == 'halted' then return 'other' end
if tonumber(found[2]) < tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], 'seq', ARGV[2]) end
redis.call('HSET', KEYS[1], 'gate', 'open')
return 'done'
