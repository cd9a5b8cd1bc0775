#!lua flags=no-writes
-- page.lua reads claims of a packet, newest first, at one moment.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
-- KEYS[3] winners in the order of their claims, list of "<number of earlier claims>:<user
--         ids as a MessagePack array>"
-- KEYS[4] winners
--
-- ARGV[1] fencing token of the caller (epoch.go)
-- ARGV[2] number of claims from the first to the newest one to read, or empty: all
-- ARGV[3] number of claims to read
--
-- Returns {outcome, number of claims up to the first one of the list, {user id, claim
-- record, ...}}. Outcomes: done; gone (no packet, or retired).

-- The fence (R9): refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end

local f = redis.call('HMGET', KEYS[2], 'state', 'retired', 'claimed_count')
if not f[1] or f[2] then return {'gone', 0, {}} end
local newest = tonumber(f[3]) or 0
if ARGV[2] ~= '' then newest = math.min(newest, tonumber(ARGV[2])) end
local oldest = math.max(newest - tonumber(ARGV[3]), 0)
if oldest == newest then return {'done', newest, {}} end

local function before(part) return tonumber(string.match(part, '^(%d+):')) end

-- Returns the part with the n-th claim, by binary search between low and high: the last
-- part that begins before it.
local function part_with(n, low, high)
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if before(redis.call('LINDEX', KEYS[3], middle)) < n then low = middle else high = middle - 1 end
  end
  return low
end

-- A part has from one to hundreds of claims. Reading as many parts as claims would be
-- correct, and far too much when the parts are large.
local last = part_with(newest, 0, redis.call('LLEN', KEYS[3]) - 1)
local parts = redis.call('LRANGE', KEYS[3], part_with(oldest + 1, math.max(last - (newest - oldest) + 1, 0), last), last)
local users = {}
for i = #parts, 1, -1 do
  local first = before(parts[i])
  local some = cmsgpack.unpack(string.sub(parts[i], string.find(parts[i], ':', 1, true) + 1))
  for n = math.min(newest - first, #some), math.max(oldest - first, 0) + 1, -1 do users[#users + 1] = some[n] end
end
local records = redis.call('HMGET', KEYS[4], unpack(users))
local out = {}
for i, user in ipairs(users) do
  out[2 * i - 1], out[2 * i] = user, records[i]
end
return {'done', newest, out}
