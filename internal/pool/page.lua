#!lua flags=no-writes
-- page.lua reads claims of a packet, newest first, at one moment.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
-- KEYS[3] winners in the order of their claims, list of "<claims before these>:<user
--         ids as a MessagePack array>"
-- KEYS[4] winners
--
-- ARGV[1] pass of the caller (epoch.go)
-- ARGV[2] how many claims were made before the newest one to read, or empty: all
-- ARGV[3] how many claims to read
--
-- Returns {outcome, claims made before and with the first one of the list, {user
-- id, claim record, ...}}. Outcomes: done; gone (no packet, or retired).

-- The gate (rule R9): the lane is in the caller's epoch, and lacks nothing he was told.
local epoch, seen, mine, made = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local gate = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', mine)
if gate[1] ~= epoch or gate[2] ~= 'open' or tonumber(gate[3]) < tonumber(seen) or (tonumber(gate[4]) or 0) < tonumber(made) then
  return redis.error_reply('HBGATE the gate of the lane is shut')
end

local f = redis.call('HMGET', KEYS[2], 'state', 'retired', 'claimed_count')
if not f[1] or f[2] then return {'gone', 0, {}} end
local newest = tonumber(f[3]) or 0
if ARGV[2] ~= '' then newest = math.min(newest, tonumber(ARGV[2])) end
local oldest = math.max(newest - tonumber(ARGV[3]), 0)
if oldest == newest then return {'done', newest, {}} end

local function before(part) return tonumber(string.match(part, '^(%d+):')) end

-- The part with the n-th claim, among those from low to high: the last one that begins
-- before it.
local function part_with(n, low, high)
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if before(redis.call('LINDEX', KEYS[3], middle)) < n then low = middle else high = middle - 1 end
  end
  return low
end

-- A part has one claim or hundreds. Each has one at least, so there are not more parts
-- than claims, but so many would be far too much to read when all of them are large.
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
