#!lua flags=allow-oom
-- throttle.lua limits the rate of calls to a provider over all processes, first come,
-- first served. A token bucket (as GCRA: the time at which it is full again) decides
-- whether a call may go out now. Otherwise the caller gets a reservation, a time after
-- all earlier reservations, so that thousands of waiting callers do not retry at once.
--
-- Each time is stored with the time of writing. After a clock was set back, a stored time
-- lies as far ahead as when it was written, and not further by the step.
--
-- KEYS[1] time in us at which the bucket is full again
-- KEYS[2] time in us of the last reservation
-- KEYS[3] time in us of the caller's reservation
--
-- ARGV[1] us between two calls
-- ARGV[2] burst: calls that may go out at once after an idle time
--
-- Returns 0 when the call may go out now, else the us to wait.

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local every = tonumber(ARGV[1])
local burst = tonumber(ARGV[2])

-- Writes "<time>:<now>", which expires `ms` after that time.
local function write(key, time, ms)
  redis.call('SET', key, string.format('%.0f:%.0f', time, now), 'PX', math.ceil((time - now) / 1000) + ms)
end
-- An unused reservation expires; its caller gets a new one at the end of the queue.
local full_ms, reservation_ms = 1000, 60000

local function read(key, ms)
  local time, at = string.match(redis.call('GET', key) or '', '^(%d+):(%d+)$')
  if not time then return nil end
  time, at = tonumber(time), tonumber(at)
  if at <= now then return time end
  time = now + time - at
  write(key, time, ms) -- else the next read would find it as far ahead again
  return time
end

local full = math.max(read(KEYS[1], full_ms) or 0, now)
local free = full + every - now <= burst * every -- one more fits into the bucket
local last = read(KEYS[2], reservation_ms) or 0
local reserved = read(KEYS[3], reservation_ms)

if reserved and reserved > now then return reserved - now end
if free and (reserved or last <= now) then
  write(KEYS[1], full + every, full_ms)
  if reserved then redis.call('DEL', KEYS[3]) end
  return 0
end
if reserved then return math.max(full + every - burst * every - now, 1) end
reserved = math.max(last, now, full - burst * every) + every
write(KEYS[2], reserved, reservation_ms)
write(KEYS[3], reserved, reservation_ms)
return reserved - now
