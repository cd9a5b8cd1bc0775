#!lua flags=allow-oom
-- clear.lua removes keys of a lane while its fence is closed, so that a rebuild from
-- MySQL does not mix with older data.
--
-- KEYS[1]  epoch of the lane, hash {epoch, gate, ...}
-- KEYS[+1] one key to remove
--
-- ARGV[1] epoch of the caller, in which the fence is closed
--
-- Returns the number of keys removed. Replies with error code HBFENCED, and changes
-- nothing, unless the fence is closed in this epoch.

local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate')
if fence[1] ~= ARGV[1] or fence[2] ~= 'closed' then return redis.error_reply('HBFENCED the fence is not closed in this epoch') end

local n = 0
for from = 2, #KEYS, 1000 do
  n = n + redis.call('UNLINK', unpack(KEYS, from, math.min(from + 999, #KEYS)))
end
return n
