#!lua flags=allow-oom
-- action.lua stores the sealed client data with which the sender pays a packet in funding, or
-- withdraws it for good: then none is stored any more.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
--
-- ARGV[1] fencing token of the caller (epoch.go)
-- ARGV[2] sealed client data; empty: withdraw it
--
-- Returns {outcome, state, counts (epoch.go)}. Outcomes: done; gone; state (another state, or
-- withdrawn before: nothing changed).

-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], process, 1)} end

local f = redis.call('HMGET', KEYS[2], 'state', 'action')
local state = f[1]
if not state then return {'gone', '', {}} end
if state ~= 'funding' or f[2] == '' then return {'state', state, {}} end
redis.call('HSET', KEYS[2], 'action', ARGV[2])
return {'done', state, changed()}
