#!lua flags=allow-oom
-- recall.lua stops a packet because its sender wants the remainder back: the
-- flag (the truth) and the hand-off (the wake-up) in one (rule R6). A packet
-- that is sold out, closing, rejected or retired stays as it is.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
-- KEYS[3] hand-off stream of the lane
--
-- ARGV[1] pass of the caller (epoch.go)
--
-- Returns {outcome, now in ms, packet hash as a flat list, what was counted (epoch.go)}.
-- Outcomes: done; not_found; not_open_yet (funding, nothing done).

-- The gate (rule R9): the lane is in the caller's epoch, and lacks nothing he was told.
local epoch, seen, mine, made = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local gate = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', mine)
if gate[1] ~= epoch or gate[2] ~= 'open' or tonumber(gate[3]) < tonumber(seen) or (tonumber(gate[4]) or 0) < tonumber(made) then
  return redis.error_reply('HBGATE the gate of the lane is shut')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], mine, 1)} end

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)

local f = redis.call('HMGET', KEYS[2], 'state', 'remaining', 'id')
local state = f[1]
if not state then return {'not_found', now, {}, {}} end
if state == 'funding' or state == 'opening' then return {'not_open_yet', now, redis.call('HGETALL', KEYS[2]), {}} end
local counted = {}
if state == 'open' and f[2] ~= '0' then
  redis.call('XADD', KEYS[3], '*', 'kind', 'recalled', 'packet_id', f[3])
  redis.call('HSET', KEYS[2], 'state', 'closing', 'reason', 'recalled')
  counted = changed()
end
return {'done', now, redis.call('HGETALL', KEYS[2]), counted}
