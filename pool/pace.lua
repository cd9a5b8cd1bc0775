#!lua flags=allow-oom
-- pace.lua gives out the calls to a provider at a fixed pace to everybody who
-- asks, on whatever machine: first come, first served. A token bucket (as GCRA:
-- the time at which it is full again) says whether a call may go out now. Who
-- may not is given a turn, a time of his own after those who wait already, so
-- that thousands who wait come back one after the other and not all at once.
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

local full = math.max(tonumber(redis.call('GET', KEYS[1])) or 0, now)
local free = full + every - now <= burst * every -- one more fits into the bucket
local last = tonumber(redis.call('GET', KEYS[2])) or 0
local turn = tonumber(redis.call('GET', KEYS[3]))

if turn and turn > now then return turn - now end
if free and (turn or last <= now) then
  full = full + every
  redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000) + 1000)
  if turn then redis.call('DEL', KEYS[3]) end
  return 0
end
if turn then return math.max(full + every - burst * every - now, 1) end
turn = math.max(last, now, full - burst * every) + every
local wait = turn - now
-- A turn that nobody takes is forgotten; its owner gets a new one at the end.
local life = math.ceil(wait / 1000) + 60000
redis.call('SET', KEYS[2], string.format('%.0f', turn), 'PX', life)
redis.call('SET', KEYS[3], string.format('%.0f', turn), 'PX', life)
return wait
