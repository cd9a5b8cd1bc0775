#!lua
-- create.lua stages a packet: its hash in state funding, its guest list, its
-- place among the lane's live packets and among those that MySQL may not know
-- yet, and the hand-off that starts its workflow. A packet that is there already (its tombstone too) is answered as
-- it is. One exception: when the same body asks again, no first answer is
-- stored and the time of the request that was busy with it is over, the caller
-- becomes the busy one (busy_until is set again, busy_before keeps what it was).
-- A call that is sent twice carries the same token, so the second sending finds
-- itself as the holder and gets the answer of the first.
--
-- KEYS[1] packet hash
-- KEYS[2] eligible user ids, set
-- KEYS[3] live packets of the lane, sorted set
-- KEYS[4] hand-off stream of the lane
-- KEYS[5] staged packets of the lane, sorted set of "<app>\0<sender id>\0<created
--         at ms, 15 digits>\0<packet id>" and the same without sender id, all
--         with score 0
--
-- ARGV[1]  packet id
-- ARGV[2]  packet as JSON, times not filled in
-- ARGV[3]  body hash
-- ARGV[4]  number of shares
-- ARGV[5]  opens_at in ms, or empty: now
-- ARGV[6]  life in ms: expires_at - opens_at
-- ARGV[7]  how far ahead opens_at may lie, in ms
-- ARGV[8]  how long the caller is busy with this packet, in ms
-- ARGV[9]  token of this call
-- ARGV[10] app
-- ARGV[11] sender id
-- ARGV[+1] one eligible user id; none at all: everybody may grab
--
-- Returns {outcome, now in ms, packet hash as a flat list}. Outcomes: staged;
-- existed; past (expires_at is not ahead, nothing done); far (opens_at is too
-- far ahead, nothing done).

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function ms(n) return string.format('%.0f', n) end

local old = redis.call('HMGET', KEYS[1], 'state', 'body_hash', 'first', 'busy_until', 'holder', 'busy_before', 'retired')
if old[1] then
  local outcome = 'existed'
  local same, first, busy_until, holder, busy_before, retired = old[2] == ARGV[3], old[3], old[4], old[5], old[6], old[7]
  if same and holder == ARGV[9] then
    if not busy_before then outcome = 'staged' end
  elseif same and not first and not retired and now >= tonumber(busy_until) then
    redis.call('HSET', KEYS[1], 'holder', ARGV[9], 'busy_before', busy_until, 'busy_until', ms(now + ARGV[8]))
  end
  return {outcome, now, redis.call('HGETALL', KEYS[1])}
end

local opens_at = now
if ARGV[5] ~= '' then opens_at = tonumber(ARGV[5]) end
local expires_at = opens_at + ARGV[6]
if expires_at <= now then return {'past', now, {}} end
if opens_at > now + ARGV[7] then return {'far', now, {}} end
local function fits(key, kind)
  local found = redis.call('TYPE', key)['ok']
  return found == 'none' or found == kind
end
if not (fits(KEYS[2], 'set') and fits(KEYS[3], 'zset') and fits(KEYS[4], 'stream') and fits(KEYS[5], 'zset')) then
  return redis.error_reply('WRONGTYPE a key of the packet or its lane holds something else')
end

redis.call('HSET', KEYS[1],
  'id', ARGV[1], 'app', ARGV[10], 'sender', ARGV[11], 'state', 'funding', 'packet', ARGV[2], 'body_hash', ARGV[3],
  'share_count', ARGV[4], 'remaining', ARGV[4], 'claimed_count', '0', 'claimed_amount', '0',
  'restricted', #ARGV > 11 and '1' or '0',
  'created_at', ms(now), 'opens_at', ms(opens_at), 'expires_at', ms(expires_at),
  'busy_until', ms(now + ARGV[8]), 'holder', ARGV[9])
redis.call('UNLINK', KEYS[2])
for from = 12, #ARGV, 1000 do
  redis.call('SADD', KEYS[2], unpack(ARGV, from, math.min(from + 999, #ARGV)))
end
redis.call('ZADD', KEYS[3], ms(now), ARGV[1])
local place = '\0' .. string.format('%015.0f', now) .. '\0' .. ARGV[1]
redis.call('ZADD', KEYS[5], '0', ARGV[10] .. '\0' .. place, '0', ARGV[10] .. '\0' .. ARGV[11] .. place)
redis.call('XADD', KEYS[4], '*', 'kind', 'created', 'packet', ARGV[2],
  'created_at', ms(now), 'opens_at', ms(opens_at), 'expires_at', ms(expires_at))
return {'staged', now, redis.call('HGETALL', KEYS[1])}
