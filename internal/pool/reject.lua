#!lua flags=allow-oom
-- reject.lua ends a packet whose charge was declined: funding -> rejected.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
-- KEYS[3] staged packets of the lane; a rejected one is in MySQL
--
-- ARGV[1] fencing token of the caller (epoch.go)
-- ARGV[2] failure as JSON
--
-- Returns {outcome, state, counts (epoch.go)}. Outcomes: done (also when it was rejected
-- before: the first failure stays); gone; state (another state, nothing changed).

-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], process, 1)} end

local f = redis.call('HMGET', KEYS[2], 'state', 'app', 'sender', 'created_at', 'id')
local state = f[1]
if not state then return {'gone', '', {}} end
if state == 'rejected' then return {'done', state, {}} end
if state ~= 'funding' then return {'state', state, {}} end
redis.call('HSET', KEYS[2], 'state', 'rejected', 'failure', ARGV[2])
local app, sender = f[2], f[3]
local member = '\0' .. string.format('%015.0f', f[4]) .. '\0' .. f[5]
redis.call('ZREM', KEYS[3], app .. '\0' .. member, app .. '\0' .. sender .. member)
return {'done', 'rejected', changed()}
