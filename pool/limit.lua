#!lua
-- limit.lua counts what somebody does against his limit, over all processes: so many
-- in a span of time, at once after a quiet time or spread over it (GCRA, as in
-- pace.lua: all that is kept is when he may do as many at once again). What is over the
-- limit is not counted, so that whoever goes on asking waits no longer for it. What was
-- counted can be given back, when it turns out that it should not have been.
--
-- KEYS[1] time in us from which on he may do as many at once again
--
-- ARGV[1] us after which one more is allowed
-- ARGV[2] how many are allowed at once
-- ARGV[3] 1: count one; -1: give one back
--
-- Returns 0 when it is within the limit, and counted, or given back; else how many us
-- until one is.

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local every = tonumber(ARGV[1])
local span = every * tonumber(ARGV[2])

-- Never further ahead than with a limit that is used up: after a clock was set back, or
-- a limit was lowered, nobody waits longer than that.
local full = math.min(math.max(tonumber(redis.call('GET', KEYS[1])) or 0, now), now + span)
local function keep()
  if full > now then
    redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000))
  else
    redis.call('DEL', KEYS[1])
  end
  return 0
end
if ARGV[3] == '-1' then
  full = full - every
  return keep()
end
local wait = full + every - span - now
if wait > 0 then return wait end
full = full + every
return keep()
