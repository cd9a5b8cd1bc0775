#!lua flags=allow-oom
-- answer.lua stores what the create request was answered first. The first one
-- stays; every caller gets it.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
--
-- ARGV[1] pass of the caller (epoch.go)
-- ARGV[2] first answer as JSON
--
-- Returns {the first answer, or false when there is no packet, what was counted
-- (epoch.go)}.

-- The gate (rule R9): the lane is in the caller's epoch, and lacks nothing he was told.
local epoch, seen, mine, made = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local gate = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', mine)
if gate[1] ~= epoch or gate[2] ~= 'open' or tonumber(gate[3]) < tonumber(seen) or (tonumber(gate[4]) or 0) < tonumber(made) then
  return redis.error_reply('HBGATE the gate of the lane is shut')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], mine, 1)} end

if redis.call('EXISTS', KEYS[2]) == 0 then return {false, {}} end
local stored = redis.call('HSETNX', KEYS[2], 'first', ARGV[2]) == 1
return {redis.call('HGET', KEYS[2], 'first'), stored and changed() or {}}
