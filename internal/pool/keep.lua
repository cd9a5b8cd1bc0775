#!lua flags=allow-oom
-- keep.lua writes an acknowledged claim that the packet's pool lacks since its rebuild, as a
-- claim without a share: a repeated grab returns it, and counters and shares stay.
-- A user's existing claim stays.
--
-- KEYS[1] epoch of the lane; its field kept counts such claims of this epoch
-- KEYS[2] packet hash, or its tombstone; its field kept counts them of the packet
-- KEYS[3] winners, hash of user id -> claim record
--
-- ARGV[1] fencing token of the caller (epoch.go)
-- ARGV[2] user id
-- ARGV[3] claim record, see grab.lua
--
-- Returns {outcome, claim record of the user, counts (epoch.go)}.
-- Outcomes: kept; known (the user has a claim, nothing changed); gone (no pool, nothing changed).

-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], process, 1)} end

local f = redis.call('HMGET', KEYS[2], 'state', 'retired')
if not f[1] or f[2] then return {'gone', '', {}} end
if redis.call('HSETNX', KEYS[3], ARGV[2], ARGV[3]) == 0 then return {'known', redis.call('HGET', KEYS[3], ARGV[2]), {}} end
redis.call('HINCRBY', KEYS[1], 'kept', 1)
redis.call('HINCRBY', KEYS[2], 'kept', 1)
return {'kept', ARGV[3], changed()}
