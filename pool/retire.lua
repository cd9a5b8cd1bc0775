#!lua
-- retire.lua removes the pool of a packet whose books are closed and leaves a
-- tombstone, so that a late repeat of the create request still meets it (rule
-- R7). The tombstone is made by the first call, and from then on the packet is
-- read from MySQL; the claims, all of which list.lua must have seen, are taken out
-- of the lane's claims by user some at a time, and the last call removes the rest.
--
-- KEYS[1] packet hash, or its tombstone
-- KEYS[2] shares
-- KEYS[3] winners
-- KEYS[4] eligible user ids
-- KEYS[5] live packets of the lane
-- KEYS[6] winners in the order of their claims, list of "<claims before these>:<user
--         ids as a MessagePack array>"
-- KEYS[7] claims of the lane by user
-- KEYS[8] staged packets of the lane
--
-- ARGV[1] packet id
-- ARGV[2] life of the tombstone in ms
-- ARGV[3] how many claims to take out, give or take those of one call of grab.lua
--
-- Returns {outcome, state}. Outcomes: done (also when there is nothing left to
-- retire); more (call again); state (grabs are still possible, nothing done).

local f = redis.call('HMGET', KEYS[1], 'state', 'retired', 'body_hash', 'first', 'app', 'sender', 'created_at')
local state, app = f[1], f[5] or ''
if state and not f[2] then
  if state ~= 'closing' and state ~= 'rejected' then return {'state', state} end
  state = state == 'closing' and 'closed' or state
  local place = '\0' .. string.format('%015.0f', f[7]) .. '\0' .. ARGV[1]
  redis.call('ZREM', KEYS[8], app .. '\0' .. place, app .. '\0' .. (f[6] or '') .. place)
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'retired', '1', 'state', state, 'body_hash', f[3], 'app', app)
  if f[4] then redis.call('HSET', KEYS[1], 'first', f[4]) end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end

local n = 0
while n < tonumber(ARGV[3]) do
  local part = redis.call('LPOP', KEYS[6])
  if not part then break end
  local users = cmsgpack.unpack(string.sub(part, string.find(part, ':', 1, true) + 1))
  local places = {}
  for i, record in ipairs(redis.call('HMGET', KEYS[3], unpack(users))) do
    local at = record and string.match(record, '^%d+:%d+:%d+:%d+:(%d+):') or '0'
    places[i] = app .. '\0' .. users[i] .. '\0' .. string.format('%015.0f', at) .. '\0' .. ARGV[1]
  end
  redis.call('ZREM', KEYS[7], unpack(places))
  n = n + #users
end
if redis.call('EXISTS', KEYS[6]) == 1 then return {'more', state or ''} end
redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4])
redis.call('ZREM', KEYS[5], ARGV[1])
return {'done', state or ''}
