#!lua flags=no-writes
-- view.lua reads a packet together with the time at which that was so.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
--
-- ARGV[1] pass of the caller (epoch.go)
--
-- Returns {now in ms, packet hash as a flat list, empty when there is none}.

-- The gate (rule R9): the lane is in the caller's epoch, and lacks nothing he was told.
local epoch, seen, mine, made = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local gate = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', mine)
if gate[1] ~= epoch or gate[2] ~= 'open' or tonumber(gate[3]) < tonumber(seen) or (tonumber(gate[4]) or 0) < tonumber(made) then
  return redis.error_reply('HBGATE the gate of the lane is shut')
end

local t = redis.call('TIME')
return {t[1] * 1000 + math.floor(t[2] / 1000), redis.call('HGETALL', KEYS[2])}
