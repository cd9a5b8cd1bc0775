#!lua
-- create.lua stages a packet: its hash in state funding, its guest list, its entries
-- among the live and the staged packets of the lane, and the hand-off that starts its
-- workflow. An existing packet or tombstone is returned unchanged, with one exception.
-- When the same body is sent again after busy_until, and no first answer is stored, the
-- caller takes over the request: busy_until is extended, busy_before keeps the old value.
-- A call that the client repeats carries the same token and returns the first outcome.
--
-- KEYS[1] epoch of the lane
-- KEYS[2] packet hash
-- KEYS[3] eligible user ids, set
-- KEYS[4] live packets of the lane, sorted set
-- KEYS[5] hand-off stream of the lane
-- KEYS[6] staged packets of the lane, sorted set of "<app>\0<sender id>\0<created
--         at ms, 15 digits>\0<packet id>" and the same without sender id, all
--         with score 0
-- KEYS[7] users who have won in a packet of the same campaign, set
--
-- ARGV[1]  fencing token of the caller (epoch.go)
-- ARGV[2]  packet id
-- ARGV[3]  packet as JSON, without times
-- ARGV[4]  body hash
-- ARGV[5]  number of shares
-- ARGV[6]  opens_at in ms, or empty: now
-- ARGV[7]  expires_at - opens_at in ms
-- ARGV[8]  maximum of opens_at - now in ms
-- ARGV[9]  time in ms for which this request is busy with the packet
-- ARGV[10] token of this call
-- ARGV[11] app
-- ARGV[12] sender id
-- ARGV[13] created_at in ms of a packet whose pool was lost, or empty: now
-- ARGV[14] time in ms after expires_at for which the wins of the campaign count; 0: a
--          user may win in each of its packets
-- ARGV[+1] one eligible user id; none: every user may grab
--
-- Returns {outcome, now in ms, packet hash as a flat list, counts (epoch.go)}.
-- Outcomes: staged; existed; past (expires_at is not in the future, nothing changed);
-- far (opens_at is too far ahead, nothing changed).

-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process)
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end
local function changed() return {redis.call('HINCRBY', KEYS[1], 'seq', 1), redis.call('HINCRBY', KEYS[1], process, 1)} end

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function ms(n) return string.format('%.0f', n) end

local old = redis.call('HMGET', KEYS[2], 'state', 'body_hash', 'first', 'busy_until', 'holder', 'busy_before', 'retired')
if old[1] then
  local outcome = 'existed'
  local same, first, busy_until, holder, busy_before, retired = old[2] == ARGV[4], old[3], old[4], old[5], old[6], old[7]
  if same and holder == ARGV[10] then
    if not busy_before then outcome = 'staged' end
  elseif same and not first and not retired and now >= tonumber(busy_until) then
    redis.call('HSET', KEYS[2], 'holder', ARGV[10], 'busy_before', busy_until, 'busy_until', ms(now + ARGV[9]))
  end
  return {outcome, now, redis.call('HGETALL', KEYS[2]), {}}
end

local created_at = now
if ARGV[13] ~= '' then created_at = tonumber(ARGV[13]) end
local opens_at = now
if ARGV[6] ~= '' then opens_at = tonumber(ARGV[6]) end
local expires_at = opens_at + ARGV[7]
if expires_at <= now then return {'past', now, {}, {}} end
if opens_at > now + ARGV[8] then return {'far', now, {}, {}} end
local function fits(key, kind)
  local found = redis.call('TYPE', key)['ok']
  return found == 'none' or found == kind
end
if not (fits(KEYS[3], 'set') and fits(KEYS[4], 'zset') and fits(KEYS[5], 'stream') and fits(KEYS[6], 'zset') and fits(KEYS[7], 'set')) then
  return redis.error_reply('WRONGTYPE a key of the packet or its lane holds something else')
end

redis.call('HSET', KEYS[2],
  'id', ARGV[2], 'app', ARGV[11], 'sender', ARGV[12], 'state', 'funding', 'packet', ARGV[3], 'body_hash', ARGV[4],
  'share_count', ARGV[5], 'claimed', '0:0:0:0:0',
  'restricted', #ARGV > 14 and '1' or '0',
  'created_at', ms(created_at), 'opens_at', ms(opens_at), 'expires_at', ms(expires_at),
  'busy_until', ms(now + ARGV[9]), 'holder', ARGV[10])
if ARGV[14] ~= '0' then
  redis.call('HSET', KEYS[2], 'wins_until', ms(expires_at + ARGV[14]))
  redis.call('PEXPIREAT', KEYS[7], ms(expires_at + ARGV[14]))
end
redis.call('UNLINK', KEYS[3])
for from = 15, #ARGV, 1000 do
  redis.call('SADD', KEYS[3], unpack(ARGV, from, math.min(from + 999, #ARGV)))
end
redis.call('ZADD', KEYS[4], ms(created_at), ARGV[2])
local member = '\0' .. string.format('%015.0f', created_at) .. '\0' .. ARGV[2]
redis.call('ZADD', KEYS[6], '0', ARGV[11] .. '\0' .. member, '0', ARGV[11] .. '\0' .. ARGV[12] .. member)
redis.call('XADD', KEYS[5], '*', 'kind', 'created', 'packet', ARGV[3],
  'created_at', ms(created_at), 'opens_at', ms(opens_at), 'expires_at', ms(expires_at))
return {'staged', now, redis.call('HGETALL', KEYS[2]), changed()}
