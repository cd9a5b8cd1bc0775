#!lua flags=allow-oom
-- dismiss.lua removes a consumer from the lane's group, but only when nothing is
-- pending for it: XGROUP DELCONSUMER would lose sight of what is.
--
-- KEYS[1] hand-off stream of the lane
--
-- ARGV[1] group
-- ARGV[2] consumer
--
-- Returns 1 when the consumer is gone, 0 when something is pending.

if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
