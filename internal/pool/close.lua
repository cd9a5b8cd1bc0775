#!lua flags=allow-oom
-- close.lua stops the grabs of a packet for ever and tells what was claimed. The
-- first reason stays, and later calls get the same answer.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
-- KEYS[3] shares; dropped when the packet never opened
--
-- ARGV[1] pass of the caller (epoch.go)
-- ARGV[2] reason: expired or sold_out (only when that is true by Redis TIME and the
--         counters), recalled or unopened (at once)
--
-- Returns {outcome, reason, claimed count, claimed amount, ms until expires_at,
-- what was counted (epoch.go)}.
-- Outcomes: closing; not_yet (neither expired nor sold out, nothing done); gone;
-- rejected (nothing to close).

-- The gate (rule R9): the lane is in the caller's epoch, and lacks nothing he was told.
local epoch, seen, mine, made = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local gate = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', mine)
if gate[1] ~= epoch or gate[2] ~= 'open' or tonumber(gate[3]) < tonumber(seen) or (tonumber(gate[4]) or 0) < tonumber(made) then
  return redis.error_reply('HBGATE the gate of the lane is shut')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], mine, 1)} end

local f = redis.call('HMGET', KEYS[2], 'state', 'retired', 'reason', 'remaining', 'expires_at', 'claimed_count', 'claimed_amount')
local state, reason, claimed_count, claimed_amount = f[1], f[3], f[6], f[7]
if not state or f[2] then return {'gone', '', '0', '0', 0, {}} end
if state == 'rejected' then return {'rejected', '', '0', '0', 0, {}} end
if state == 'closing' then return {'closing', reason, claimed_count, claimed_amount, 0, {}} end

reason = ARGV[2]
if reason == 'expired' or reason == 'sold_out' then
  local t = redis.call('TIME')
  local left = tonumber(f[5]) - (t[1] * 1000 + math.floor(t[2] / 1000))
  local sold_out = state == 'open' and f[4] == '0'
  if left > 0 and not sold_out then return {'not_yet', '', claimed_count, claimed_amount, left, {}} end
  if reason == 'sold_out' and not sold_out then reason = 'expired' end
end
redis.call('HSET', KEYS[2], 'state', 'closing', 'reason', reason)
if state ~= 'open' then redis.call('UNLINK', KEYS[3]) end
return {'closing', reason, claimed_count, claimed_amount, 0, changed()}
