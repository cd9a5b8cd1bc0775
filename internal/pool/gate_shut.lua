#!lua flags=allow-oom
-- gate_shut.lua begins a new epoch of a lane behind a closed gate (rule R9): from then
-- on no script with the epoch before changes anything, and none with the new one until
-- gate_open.lua. The counters begin anew. A lane that is in this epoch already stays as
-- it is, so a repeat harms nobody.
--
-- KEYS[1] epoch of the lane
--
-- ARGV[1] the new epoch
--
-- Returns the outcome. Outcomes: done; newer (the lane is in a later epoch, nothing done).

local epoch = tonumber(redis.call('HGET', KEYS[1], 'epoch')) or 0
if epoch > tonumber(ARGV[1]) then return 'newer' end
if epoch < tonumber(ARGV[1]) then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'seq', '0', 'grabs', '0', 'gate', 'closed')
end
return 'done'
