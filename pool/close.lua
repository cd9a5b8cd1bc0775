#!lua
-- close.lua stops the grabs of a packet for ever and tells what was claimed. The
-- first reason stays, and later calls get the same answer.
--
-- KEYS[1] packet hash, or its tombstone
-- KEYS[2] shares; dropped when the packet never opened
--
-- ARGV[1] reason: expired or sold_out (only when that is true by Redis TIME and the
--         counters), recalled or unopened (at once)
--
-- Returns {outcome, reason, claimed count, claimed amount, ms until expires_at}.
-- Outcomes: closing; not_yet (neither expired nor sold out, nothing done); gone;
-- rejected (nothing to close).

local f = redis.call('HMGET', KEYS[1], 'state', 'retired', 'reason', 'remaining', 'expires_at', 'claimed_count', 'claimed_amount')
local state, reason, claimed_count, claimed_amount = f[1], f[3], f[6], f[7]
if not state or f[2] then return {'gone', '', '0', '0', 0} end
if state == 'rejected' then return {'rejected', '', '0', '0', 0} end
if state == 'closing' then return {'closing', reason, claimed_count, claimed_amount, 0} end

reason = ARGV[1]
if reason == 'expired' or reason == 'sold_out' then
  local t = redis.call('TIME')
  local left = tonumber(f[5]) - (t[1] * 1000 + math.floor(t[2] / 1000))
  local sold_out = state == 'open' and f[4] == '0'
  if left > 0 and not sold_out then return {'not_yet', '', claimed_count, claimed_amount, left} end
  if reason == 'sold_out' and not sold_out then reason = 'expired' end
end
redis.call('HSET', KEYS[1], 'state', 'closing', 'reason', reason)
if state ~= 'open' then redis.call('UNLINK', KEYS[2]) end
return {'closing', reason, claimed_count, claimed_amount, 0}
