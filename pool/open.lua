#!lua
-- open.lua loads one chunk of shares and opens the packet with the last one
-- (rule R7). It appends only where the list ends, so chunks may be sent twice
-- and by several loaders.
--
-- KEYS[1] packet hash
-- KEYS[2] shares, list of "<index>:<amount>:<sum>:<best>", taken from the left (grab.lua)
-- KEYS[3] staged packets of the lane; an open one is in MySQL
--
-- ARGV[1]  offset: index of the first share of this chunk
-- ARGV[+1] one share "<index>:<amount>:<sum>:<best>"
--
-- Returns {outcome, shares loaded}. Outcomes: loading (go on from the number of
-- shares loaded); done (open, or any state after it); gone; excess (more shares
-- than the packet has, nothing done).

local f = redis.call('HMGET', KEYS[1], 'state', 'share_count', 'retired', 'app', 'sender', 'created_at', 'id')
local state, count = f[1], tonumber(f[2])
if not state then return {'gone', 0} end
if f[3] or (state ~= 'funding' and state ~= 'opening') then return {'done', 0} end

local loaded = redis.call('LLEN', KEYS[2])
if loaded ~= tonumber(ARGV[1]) then return {'loading', loaded} end
if loaded + #ARGV - 1 > count then return {'excess', loaded} end

if state == 'funding' then redis.call('HSET', KEYS[1], 'state', 'opening') end
for from = 2, #ARGV, 1000 do
  loaded = redis.call('RPUSH', KEYS[2], unpack(ARGV, from, math.min(from + 999, #ARGV)))
end
if loaded < count then return {'loading', loaded} end
redis.call('HSET', KEYS[1], 'state', 'open')
local app, sender = f[4], f[5]
local place = '\0' .. string.format('%015.0f', f[6]) .. '\0' .. f[7]
redis.call('ZREM', KEYS[3], app .. '\0' .. place, app .. '\0' .. sender .. place)
return {'done', loaded}
