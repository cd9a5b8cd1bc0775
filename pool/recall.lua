#!lua
-- recall.lua stops a packet because its sender wants the remainder back: the
-- flag (the truth) and the hand-off (the wake-up) in one (rule R6). A packet
-- that is sold out, closing, rejected or retired stays as it is.
--
-- KEYS[1] packet hash, or its tombstone
-- KEYS[2] hand-off stream of the lane
--
-- Returns {outcome, now in ms, packet hash as a flat list}. Outcomes: done;
-- not_found; not_open_yet (funding, nothing done).

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)

local f = redis.call('HMGET', KEYS[1], 'state', 'remaining', 'id')
local state = f[1]
if not state then return {'not_found', now, {}} end
if state == 'funding' or state == 'opening' then return {'not_open_yet', now, redis.call('HGETALL', KEYS[1])} end
if state == 'open' and f[2] ~= '0' then
  redis.call('XADD', KEYS[2], '*', 'kind', 'recalled', 'packet_id', f[3])
  redis.call('HSET', KEYS[1], 'state', 'closing', 'reason', 'recalled')
end
return {'done', now, redis.call('HGETALL', KEYS[1])}
