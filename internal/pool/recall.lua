#!lua flags=allow-oom
-- recall.lua stops a packet because its sender wants the remainder back. It writes the
-- flag, which decides, and the hand-off, which wakes the workflow, in one step (R6). A
-- packet that is sold out, closing, rejected or retired stays unchanged.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
-- KEYS[3] hand-off stream of the lane
--
-- ARGV[1] fencing token of the caller (epoch.go)
--
-- Returns {outcome, now in ms, packet hash as a flat list, counts (epoch.go)}.
-- Outcomes: done; not_found; not_open_yet (funding, nothing changed).

-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], process, 1)} end

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)

local f = redis.call('HMGET', KEYS[2], 'state', 'share_count', 'id', 'claimed')
local state = f[1]
if not state then return {'not_found', now, {}, {}} end
if state == 'funding' or state == 'opening' then return {'not_open_yet', now, redis.call('HGETALL', KEYS[2]), {}} end
local counted = {}
if state == 'open' and f[2] ~= string.match(f[4] or '', '^%d+') then
  redis.call('XADD', KEYS[3], '*', 'kind', 'recalled', 'packet_id', f[3])
  redis.call('HSET', KEYS[2], 'state', 'closing', 'reason', 'recalled')
  counted = changed()
end
return {'done', now, redis.call('HGETALL', KEYS[2]), counted}
