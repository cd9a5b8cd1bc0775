#!lua flags=allow-oom
-- pace.lua gives out the calls to a provider at a fixed pace to everybody who
-- asks, on whatever machine: first come, first served. A token bucket (as GCRA:
-- the time at which it is full again) says whether a call may go out now. Who
-- may not is given a turn, a time of his own after those who wait already, so
-- that thousands who wait come back one after the other and not all at once.
--
-- Every time is kept with the time at which it was written: when the clock was set back
-- since, what lay ahead lies as far ahead as it did then, and not by the step further.
--
-- KEYS[1] time in us at which the bucket is full again
-- KEYS[2] time in us of the last turn that was given
-- KEYS[3] time in us of the caller's turn, while he waits
--
-- ARGV[1] us between two calls
-- ARGV[2] calls that may go out at once after a quiet time
--
-- Returns 0 when the call may go out now, else how many us to wait.

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local every = tonumber(ARGV[1])
local burst = tonumber(ARGV[2])

-- Writes "<time>:<now>"; it is forgotten some ms after that time.
local function write(key, time, ms)
  redis.call('SET', key, string.format('%.0f:%.0f', time, now), 'PX', math.ceil((time - now) / 1000) + ms)
end
-- A turn that nobody takes is forgotten; its owner gets a new one at the end.
local full_ms, turn_ms = 1000, 60000

local function read(key, ms)
  local time, at = string.match(redis.call('GET', key) or '', '^(%d+):(%d+)$')
  if not time then return nil end
  time, at = tonumber(time), tonumber(at)
  if at <= now then return time end
  time = now + time - at
  write(key, time, ms) -- else the next look would find it as far ahead again
  return time
end

local full = math.max(read(KEYS[1], full_ms) or 0, now)
local free = full + every - now <= burst * every -- one more fits into the bucket
local last = read(KEYS[2], turn_ms) or 0
local turn = read(KEYS[3], turn_ms)

if turn and turn > now then return turn - now end
if free and (turn or last <= now) then
  write(KEYS[1], full + every, full_ms)
  if turn then redis.call('DEL', KEYS[3]) end
  return 0
end
if turn then return math.max(full + every - burst * every - now, 1) end
turn = math.max(last, now, full - burst * every) + every
write(KEYS[2], turn, turn_ms)
write(KEYS[3], turn, turn_ms)
return turn - now
