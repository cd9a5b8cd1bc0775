#!lua flags=no-writes
-- page.lua reads claims of a packet, newest first, at one moment.
--
-- KEYS[1] packet hash, or its tombstone
-- KEYS[2] user ids of the winners in the order of their claims
-- KEYS[3] winners
--
-- ARGV[1] how many claims were made before the newest one to read, or empty: all
-- ARGV[2] how many claims to read
--
-- Returns {outcome, claims made before and with the first one of the list, {user
-- id, claim record, ...}}. Outcomes: done; gone (no packet, or retired).

local f = redis.call('HMGET', KEYS[1], 'state', 'retired')
if not f[1] or f[2] then return {'gone', 0, {}} end
local newest = redis.call('LLEN', KEYS[2])
if ARGV[1] ~= '' then newest = math.min(newest, tonumber(ARGV[1])) end
local oldest = math.max(newest - tonumber(ARGV[2]), 0)
if oldest == newest then return {'done', newest, {}} end
local users = redis.call('LRANGE', KEYS[2], oldest, newest - 1)
local records = redis.call('HMGET', KEYS[3], unpack(users))
local out = {}
for i = #users, 1, -1 do
  out[#out + 1] = users[i]
  out[#out + 1] = records[i]
end
return {'done', newest, out}
