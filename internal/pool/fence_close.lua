#!lua flags=allow-oom
-- fence_close.lua begins a new epoch of a lane with a closed fence and counters at 0
-- (R9). From then on calls of the earlier epoch are refused, and those of the new one
-- until fence_open.lua. A lane that is already in this epoch stays unchanged.
--
-- KEYS[1] epoch of the lane
--
-- ARGV[1] the new epoch
--
-- Returns the outcome. Outcomes: done; newer (the lane is in a later epoch, nothing
-- changed).

local epoch = tonumber(redis.call('HGET', KEYS[1], 'epoch')) or 0
if epoch > tonumber(ARGV[1]) then return 'newer' end
if epoch < tonumber(ARGV[1]) then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'seq', '0', 'grabs', '0', 'gate', 'closed')
end
return 'done'
