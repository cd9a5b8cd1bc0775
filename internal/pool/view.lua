#!lua flags=no-writes
-- view.lua reads a packet together with the time of reading.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
--
-- ARGV[1] fencing token of the caller (epoch.go)
--
-- Returns {now in ms, packet hash as a flat list, empty when there is none}.

-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end

local t = redis.call('TIME')
return {t[1] * 1000 + math.floor(t[2] / 1000), redis.call('HGETALL', KEYS[2])}
