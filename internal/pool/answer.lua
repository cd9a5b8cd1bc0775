#!lua flags=allow-oom
-- answer.lua stores the first answer of a create request. The first one stays, and
-- every caller gets it.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
--
-- ARGV[1] fencing token of the caller (epoch.go)
-- ARGV[2] first answer as JSON
--
-- Returns {the first answer, or false when there is no packet, counts (epoch.go)}.

-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], process, 1)} end

if redis.call('EXISTS', KEYS[2]) == 0 then return {false, {}} end
local stored = redis.call('HSETNX', KEYS[2], 'first', ARGV[2]) == 1
return {redis.call('HGET', KEYS[2], 'first'), stored and changed() or {}}
