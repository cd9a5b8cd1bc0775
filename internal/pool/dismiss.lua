#!lua flags=allow-oom
-- dismiss.lua removes a consumer from the lane's group, unless entries are pending for
-- it: XGROUP DELCONSUMER would orphan them.
--
-- KEYS[1] hand-off stream of the lane
--
-- ARGV[1] consumer group
-- ARGV[2] consumer
--
-- Returns 1 when the consumer is removed, 0 when entries are pending.

if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
