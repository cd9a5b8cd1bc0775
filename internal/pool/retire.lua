#!lua flags=allow-oom
-- retire.lua removes the pool of a closed packet and leaves a tombstone, which answers
-- a late repeat of the create request (R7). A packet that is not open yet is retired
-- too: a create without MySQL staged it again long after its end. The first call writes
-- the tombstone, and from then on the packet is read from MySQL. The calls scan its claims,
-- all indexed before by index.lua, and remove them from the lane's claims by user. The last
-- call removes the pool.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
-- KEYS[3] shares
-- KEYS[4] winners
-- KEYS[5] eligible user ids
-- KEYS[6] live packets of the lane
-- KEYS[7] users in the order of their claims
-- KEYS[8] claims of the lane by user
-- KEYS[9] staged packets of the lane
--
-- ARGV[1] fencing token of the caller (epoch.go)
-- ARGV[2] packet id
-- ARGV[3] duration of the tombstone in ms
-- ARGV[4] cursor of the scan, 0 in the first call
-- ARGV[5] number of claims to scan, about
--
-- Returns {outcome, state, next cursor, counts (epoch.go)}. Outcomes: done (also when nothing
-- is left to retire); more (call again); state (grabs are still possible, nothing changed).

-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], process, 1)} end

local f = redis.call('HMGET', KEYS[2], 'state', 'retired', 'body_hash', 'first', 'app', 'sender', 'created_at')
local state, app, counted = f[1], f[5] or '', {}
if state and not f[2] then
  if state == 'open' then return {'state', state, '0', {}} end
  state = state == 'rejected' and state or 'closed'
  local member = '\0' .. string.format('%015.0f', f[7]) .. '\0' .. ARGV[2]
  redis.call('ZREM', KEYS[9], app .. '\0' .. member, app .. '\0' .. (f[6] or '') .. member)
  redis.call('DEL', KEYS[2])
  redis.call('HSET', KEYS[2], 'retired', '1', 'state', state, 'body_hash', f[3], 'app', app)
  if f[4] then redis.call('HSET', KEYS[2], 'first', f[4]) end
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
  counted = changed()
end

local scan = redis.call('HSCAN', KEYS[4], ARGV[4], 'COUNT', ARGV[5])
local members = {}
for i = 1, #scan[2], 2 do
  local at = string.match(scan[2][i + 1], '^%d+:%d+:(%d+):') or '0'
  members[#members + 1] = app .. '\0' .. scan[2][i] .. '\0' .. string.format('%015.0f', at) .. '\0' .. ARGV[2]
end
for from = 1, #members, 1000 do
  redis.call('ZREM', KEYS[8], unpack(members, from, math.min(from + 999, #members)))
end
if scan[1] ~= '0' then return {'more', state or '', scan[1], counted} end
redis.call('UNLINK', KEYS[3], KEYS[4], KEYS[5], KEYS[7])
redis.call('ZREM', KEYS[6], ARGV[2])
return {'done', state or '', '0', counted}
