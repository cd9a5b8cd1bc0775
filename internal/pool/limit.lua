#!lua
-- limit.lua counts a request against all its limits, over all processes: so many in a
-- span of time, at once after a quiet time or spread over it (GCRA, as in pace.lua: all
-- that is kept is when the party may do as many at once again). It counts against all of
-- them or, when one is used up, against none: whoever goes on asking waits no longer for
-- it, and no limit is consumed by the refusal of another. What was counted can be given
-- back, when it turns out that it should not have been.
--
-- KEYS[+1] of each limit, in the order in which they are looked at: time in us from which
--          on as many at once are allowed again
--
-- ARGV[1]  1: count one; -1: give one back
-- ARGV[+1] of each limit: us after which one more is allowed
-- ARGV[+2] how many are allowed at once
--
-- Returns {0, 0} when it was within all limits, and counted, or given back; else {place of
-- the first limit that is used up, from 1; how many us until that allows one}.

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local back = ARGV[1] == '-1'

local full = {}
for i = 1, #KEYS do
  local every = tonumber(ARGV[2 * i])
  local span = every * tonumber(ARGV[2 * i + 1])
  -- Never further ahead than with a limit that is used up: after a clock was set back, or
  -- a limit was lowered, nobody waits longer than that.
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
