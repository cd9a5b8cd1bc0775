#!lua flags=no-writes
-- page.lua reads claims of a packet, newest first, at one moment.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
-- KEYS[3] users in the order of their claims, list
-- KEYS[4] winners
--
-- ARGV[1] fencing token of the caller (epoch.go)
-- ARGV[2] number of claims from the first to the newest one to read, or empty: all
-- ARGV[3] number of claims to read
--
-- Returns {outcome, number of claims up to the first one of the list, {user id, claim
-- record, ...}}. Outcomes: done; gone (no packet, or retired).

-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end

local f = redis.call('HMGET', KEYS[2], 'state', 'retired')
if not f[1] or f[2] then return {'gone', 0, {}} end
local newest = redis.call('LLEN', KEYS[3])
if ARGV[2] ~= '' then newest = math.min(newest, tonumber(ARGV[2])) end
local oldest = math.max(newest - tonumber(ARGV[3]), 0)
if oldest == newest then return {'done', newest, {}} end

local users = redis.call('LRANGE', KEYS[3], oldest, newest - 1)
local records = redis.call('HMGET', KEYS[4], unpack(users))
local out = {}
for i = #users, 1, -1 do
  out[#out + 1] = users[i]
  out[#out + 1] = records[i]
end
return {'done', newest, out}
