#!lua
-- open.lua loads one chunk of shares, and opens the packet with the last one (R7). It
-- appends only where the loaded shares end, so chunks may be repeated, also by several
-- loaders.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash
-- KEYS[3] shares, string of packed shares of 10 bytes (grab.lua)
-- KEYS[4] staged packets of the lane; an open one is in MySQL
--
-- ARGV[1] fencing token of the caller (epoch.go)
-- ARGV[2] offset: index of the first share of this chunk
-- ARGV[3] the packed shares of this chunk
--
-- Returns {outcome, shares loaded, counts (epoch.go)}. Outcomes: loading (continue at
-- the number of shares loaded); done (open, or any later state); gone; excess (more
-- shares than the packet has, nothing changed).

-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], process, 1)} end

local f = redis.call('HMGET', KEYS[2], 'state', 'share_count', 'retired', 'app', 'sender', 'created_at', 'id')
local state, count = f[1], tonumber(f[2])
if not state then return {'gone', 0, {}} end
if f[3] or (state ~= 'funding' and state ~= 'opening') then return {'done', 0, {}} end

local loaded, chunk = redis.call('STRLEN', KEYS[3]) / 10, #ARGV[3] / 10
if loaded ~= tonumber(ARGV[2]) then return {'loading', loaded, {}} end
if loaded + chunk > count or chunk ~= math.floor(chunk) then return {'excess', loaded, {}} end

if state == 'funding' then redis.call('HSET', KEYS[2], 'state', 'opening') end
if chunk > 0 then redis.call('APPEND', KEYS[3], ARGV[3]) end
loaded = loaded + chunk
if loaded < count then return {'loading', loaded, changed()} end
redis.call('HSET', KEYS[2], 'state', 'open')
local app, sender = f[4], f[5]
local member = '\0' .. string.format('%015.0f', f[6]) .. '\0' .. f[7]
redis.call('ZREM', KEYS[4], app .. '\0' .. member, app .. '\0' .. sender .. member)
return {'done', loaded, changed()}
