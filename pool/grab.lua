#!lua
-- grab.lua decides grabs of one lane, in the order they are given. Everything
-- is read and checked first; then the winners, the counters and one hand-off
-- for the whole call are written. A grab that is sent twice finds the claim of
-- its first sending, knows it by the profile, and is answered as won again.
--
-- KEYS[1]  hand-off stream of the lane
-- KEYS[2]  claims of the lane by user, sorted set of "<app>\0<user id>\0<claimed
--          at ms, 15 digits>\0<packet id>", all with score 0
-- KEYS[+1] packet hash
-- KEYS[+2] shares, list of "<index>:<amount>"
-- KEYS[+3] winners, hash of user id -> "<index>:<amount>:<claimed at ms>:<profile>"
-- KEYS[+4] eligible user ids, set
-- KEYS[+5] user ids of the winners, list in the order of their claims
--
-- ARGV[+1] number of the packet within KEYS, from 1
-- ARGV[+2] user id; at most once for a packet
-- ARGV[+3] profile as JSON, with a member that no other grab has
--
-- Returns a flat list {outcome, detail, ...}, two elements a grab. Outcomes in
-- order of precedence, the first that fits (packet.GrabResult): not_found;
-- replayed (detail: claim record of an earlier grab); retired; not_open_yet
-- (detail: opens_at in ms, empty while funding); not_eligible; sold_out; expired;
-- won (detail: claim record); unavailable (counters and shares disagree, nothing
-- taken).

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local stamp = string.format('%.0f', now)
local place_at = '\0' .. string.format('%015.0f', now) .. '\0'

local packets = {}
for n = 1, (#KEYS - 2) / 5 do
  local key = 5 * n - 2
  local f = redis.call('HMGET', KEYS[key], 'state', 'id', 'opens_at', 'expires_at', 'restricted', 'remaining',
    'claimed_count', 'claimed_amount', 'retired', 'app', 'best')
  packets[n] = {
    key = KEYS[key], shares = KEYS[key + 1], winners = KEYS[key + 2], eligible = KEYS[key + 3], order = KEYS[key + 4],
    state = f[1], id = f[2], opens_at = tonumber(f[3]), opens_at_ms = f[3], expires_at = tonumber(f[4]),
    restricted = f[5] == '1',
    remaining = tonumber(f[6]), count = tonumber(f[7]), amount = tonumber(f[8]), retired = f[9], app = f[10], best = f[11],
    asked = {}, won = {},
  }
end

-- Records stay text all the way: Lua would print amounts with 14 digits.
local function decide(p, user, profile)
  if not p.state then return 'not_found', '' end
  local record = redis.call('HGET', p.winners, user)
  if record then
    if string.sub(record, -#profile - 1) == ':' .. profile then return 'won', record end
    return 'replayed', record
  end
  if p.retired then return 'retired', '' end
  if p.state == 'funding' or p.state == 'opening' then return 'not_open_yet', '' end
  if not (p.opens_at and p.expires_at and p.remaining) then return 'unavailable', '' end
  if now < p.opens_at then return 'not_open_yet', p.opens_at_ms end
  if p.restricted and redis.call('SISMEMBER', p.eligible, user) == 0 then return 'not_eligible', '' end
  if p.remaining == #p.won then return 'sold_out', '' end
  if p.state ~= 'open' or now >= p.expires_at then return 'expired', '' end
  return 'take', ''
end

local reply = {}
for i = 1, #ARGV, 3 do
  local p, user = packets[tonumber(ARGV[i])], ARGV[i + 1]
  if p.asked[user] then return redis.error_reply('ERR one user twice for one packet in a call') end
  p.asked[user] = true
  local at = #reply + 1
  reply[at], reply[at + 1] = decide(p, user, ARGV[i + 2])
  if reply[at] == 'take' then p.won[#p.won + 1] = {at = at, user = user, profile = ARGV[i + 2]} end
end

-- The next shares of a packet with their sum, or nil when the pool contradicts
-- itself. best becomes the luckiest claim (packet.Luckier) after they are
-- claimed, as "<index>:<amount>:<claimed at ms>". Amounts, and the total of a
-- packet, are below 2^53, where numbers are exact.
local function next_shares(p)
  if not (p.id and p.app and p.count and p.amount) then return nil end
  if redis.call('LLEN', p.shares) ~= p.remaining or redis.call('LLEN', p.order) ~= p.count then return nil end
  local shares = redis.call('LRANGE', p.shares, 0, #p.won - 1)
  local sum, best, index, most, at = 0, p.best, nil, -1, nil
  if best then
    local i, a, t = string.match(best, '^(%d+):(%d+):(%d+)$')
    if not i then return nil end
    index, most, at = tonumber(i), tonumber(a), tonumber(t)
  end
  for _, share in ipairs(shares) do
    local i, a = string.match(share, '^(%d+):(%d+)$')
    if not i then return nil end
    a = tonumber(a)
    sum = sum + a
    if a >= most and (a > most or now < at or now == at and tonumber(i) < index) then
      index, most, at, best = tonumber(i), a, now, share .. ':' .. stamp
    end
  end
  p.sum, p.luckiest = string.format('%.0f', sum), best
  return shares
end

local entry = {'kind', 'claims'}
local function add(field, value)
  entry[#entry + 1] = field
  entry[#entry + 1] = value
end
local places = {}
local taking = {}
for _, p in ipairs(packets) do
  local shares = #p.won > 0 and next_shares(p)
  if shares then
    p.records, p.users = {}, {}
    local owner, place = p.app .. '\0', place_at .. p.id
    for i, grab in ipairs(p.won) do
      local record = shares[i] .. ':' .. stamp .. ':' .. grab.profile
      reply[grab.at], reply[grab.at + 1] = 'won', record
      p.records[2 * i - 1], p.records[2 * i], p.users[i] = grab.user, record, grab.user
      places[#places + 1] = '0'
      places[#places + 1] = owner .. grab.user .. place
      add('claim:' .. p.id .. ':' .. grab.user, record)
    end
    if #shares == p.remaining then add('last:' .. p.id, '1') end
    taking[#taking + 1] = p
  else
    for _, grab in ipairs(p.won) do reply[grab.at] = 'unavailable' end
  end
end
if #taking == 0 then return reply end
redis.call('ZCARD', KEYS[2]) -- fails when the key holds something else

-- From here on only writes. XADD comes first: it is the one that a damaged key can refuse.
redis.call('XADD', KEYS[1], '*', unpack(entry))
redis.call('ZADD', KEYS[2], unpack(places))
for _, p in ipairs(taking) do
  redis.call('LPOP', p.shares, #p.won)
  redis.call('HSET', p.winners, unpack(p.records))
  redis.call('RPUSH', p.order, unpack(p.users))
  if p.luckiest ~= p.best then redis.call('HSET', p.key, 'best', p.luckiest) end
  redis.call('HINCRBY', p.key, 'remaining', -#p.won)
  redis.call('HINCRBY', p.key, 'claimed_count', #p.won)
  redis.call('HINCRBY', p.key, 'claimed_amount', p.sum)
end
return reply
