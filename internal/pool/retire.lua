#!lua flags=allow-oom
-- retire.lua removes the pool of a packet whose books are closed and leaves a
-- tombstone, so that a late repeat of the create request still meets it (rule
-- R7). One that is not open yet goes too: it was staged again when the packet had ended
-- long before, by a create that could not ask MySQL. The tombstone is made by the first call, and from then on the packet is
-- read from MySQL; the claims, all of which list.lua must have seen, are taken out
-- of the lane's claims by user some at a time, and the last call removes the rest.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash, or its tombstone
-- KEYS[3] shares
-- KEYS[4] winners
-- KEYS[5] eligible user ids
-- KEYS[6] live packets of the lane
-- KEYS[7] winners in the order of their claims, list of "<claims before these>:<user
--         ids as a MessagePack array>"
-- KEYS[8] claims of the lane by user
-- KEYS[9] staged packets of the lane
--
-- ARGV[1] pass of the caller (epoch.go)
-- ARGV[2] packet id
-- ARGV[3] life of the tombstone in ms
-- ARGV[4] how many claims to take out, give or take those of one call of grab.lua
--
-- Returns {outcome, state, what was counted (epoch.go)}. Outcomes: done (also when there
-- is nothing left to retire); more (call again); state (grabs are still possible,
-- nothing done).

-- The gate (rule R9): the lane is in the caller's epoch, and lacks nothing he was told.
local epoch, seen, mine, made = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local gate = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', mine)
if gate[1] ~= epoch or gate[2] ~= 'open' or tonumber(gate[3]) < tonumber(seen) or (tonumber(gate[4]) or 0) < tonumber(made) then
  return redis.error_reply('HBGATE the gate of the lane is shut')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], mine, 1)} end

local f = redis.call('HMGET', KEYS[2], 'state', 'retired', 'body_hash', 'first', 'app', 'sender', 'created_at')
local state, app, counted = f[1], f[5] or '', {}
if state and not f[2] then
  if state == 'open' then return {'state', state, {}} end
  state = state == 'rejected' and state or 'closed'
  local place = '\0' .. string.format('%015.0f', f[7]) .. '\0' .. ARGV[2]
  redis.call('ZREM', KEYS[9], app .. '\0' .. place, app .. '\0' .. (f[6] or '') .. place)
  redis.call('DEL', KEYS[2])
  redis.call('HSET', KEYS[2], 'retired', '1', 'state', state, 'body_hash', f[3], 'app', app)
  if f[4] then redis.call('HSET', KEYS[2], 'first', f[4]) end
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
  counted = changed()
end

local n = 0
while n < tonumber(ARGV[4]) do
  local part = redis.call('LPOP', KEYS[7])
  if not part then break end
  local users = cmsgpack.unpack(string.sub(part, string.find(part, ':', 1, true) + 1))
  local places = {}
  for i, record in ipairs(redis.call('HMGET', KEYS[4], unpack(users))) do
    local at = record and string.match(record, '^%d+:%d+:%d+:%d+:(%d+):') or '0'
    places[i] = app .. '\0' .. users[i] .. '\0' .. string.format('%015.0f', at) .. '\0' .. ARGV[2]
  end
  redis.call('ZREM', KEYS[8], unpack(places))
  n = n + #users
end
if redis.call('EXISTS', KEYS[7]) == 1 then return {'more', state or '', counted} end
redis.call('UNLINK', KEYS[3], KEYS[4], KEYS[5])
redis.call('ZREM', KEYS[6], ARGV[2])
return {'done', state or '', counted}
