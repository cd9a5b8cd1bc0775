#!lua flags=allow-oom
-- close.lua ends the grabs of a packet and returns what was claimed. The first reason
-- stays, and a repeated call returns the same.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
-- KEYS[3] shares; deleted when the packet never opened
--
-- ARGV[1] fencing token of the caller (epoch.go)
-- ARGV[2] reason. A pool that never opened closes as unopened, whatever the reason. An open
--         one closes as recalled, or as expired or sold out if Redis TIME or its
--         counters say so.
--
-- Returns {outcome, reason, claimed count, claimed amount, ms until expires_at,
-- counts (epoch.go)}.
-- Outcomes: closing; not_yet (open, neither expired nor sold out, nothing changed);
-- gone; rejected (nothing to close).

-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], process, 1)} end

local f = redis.call('HMGET', KEYS[2], 'state', 'retired', 'reason', 'share_count', 'expires_at', 'claimed')
local state, reason = f[1], f[3]
local claimed_count, claimed_amount = string.match(f[6] or '', '^(%d+):(%d+):')
if not state or f[2] then return {'gone', '', '0', '0', 0, {}} end
if state == 'rejected' then return {'rejected', '', '0', '0', 0, {}} end
if state == 'closing' then return {'closing', reason, claimed_count, claimed_amount, 0, {}} end

reason = ARGV[2]
if state ~= 'open' then
  reason = 'unopened'
elseif reason ~= 'recalled' then
  local t = redis.call('TIME')
  local left = tonumber(f[5]) - (t[1] * 1000 + math.floor(t[2] / 1000))
  local sold_out = f[4] == claimed_count
  if left > 0 and not sold_out then return {'not_yet', '', claimed_count, claimed_amount, left, {}} end
  if reason ~= 'sold_out' or not sold_out then reason = 'expired' end
end
redis.call('HSET', KEYS[2], 'state', 'closing', 'reason', reason)
if state ~= 'open' then redis.call('UNLINK', KEYS[3]) end
return {'closing', reason, claimed_count, claimed_amount, 0, changed()}
