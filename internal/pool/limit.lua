#!lua
-- limit.lua counts a request against all its limits, over all processes: N in a span of
-- time, as one burst or spread (GCRA, as in throttle.lua: one value a limit, the time at
-- which the full burst is available again). It counts against all limits, or against
-- none when one is used up: a refused request consumes nothing. A count can be returned.
--
-- KEYS[+1] of each limit, in the order of checking: time in us at which the full burst
--          is available again
--
-- ARGV[1]  1: count one; -1: return one
-- ARGV[+1] of each limit: us after which one more is allowed
-- ARGV[+2] burst
--
-- Returns {0, 0} when the request is within all limits and counted, or returned; else
-- {position of the first limit that is used up, from 1; us until it allows one}.

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local back = ARGV[1] == '-1'

local full = {}
for i = 1, #KEYS do
  local every = tonumber(ARGV[2 * i])
  local span = every * tonumber(ARGV[2 * i + 1])
  -- Bounded by the span: after a clock was set back, or a limit was lowered, no request
  -- waits longer than that.
  full[i] = math.min(math.max(tonumber(redis.call('GET', KEYS[i])) or 0, now), now + span)
  if back then
    full[i] = full[i] - every
  else
    full[i] = full[i] + every
    if full[i] > now + span then return {i, full[i] - span - now} end
  end
end
for i = 1, #KEYS do
  if full[i] > now then
    redis.call('SET', KEYS[i], string.format('%.0f', full[i]), 'PX', math.ceil((full[i] - now) / 1000))
  else
    redis.call('DEL', KEYS[i])
  end
end
return {0, 0}
