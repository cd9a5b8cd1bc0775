#!lua
-- grab_before.lua is a baseline: the grab script of this project before shares were
-- packed. It decides grabs of one lane: for each packet those of some users, in order.
--
-- KEYS[1]  epoch of the lane
-- KEYS[2]  hand-off stream of the lane
-- KEYS[+1] packet hash
-- KEYS[+2] shares, list of "<index>:<amount>:<sum>:<best>", taken from the left
-- KEYS[+3] winners, hash of user id -> claim record
-- KEYS[+4] eligible user ids, set
-- KEYS[+5] winners in the order of their claims, list
--
-- ARGV[1]  fencing token of the caller
-- ARGV[2]  mark of this call
-- ARGV[+1] user ids as a MessagePack array
-- ARGV[+2] their profiles as a MessagePack map, or empty
--
-- Returns a flat list of five elements a packet, and the counts.

local epoch, seen, mine, made = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local gate = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', mine, 'grabs')
if gate[1] ~= epoch or gate[2] ~= 'open' or tonumber(gate[3]) < tonumber(seen) or (tonumber(gate[4]) or 0) < tonumber(made) then
  return redis.error_reply('HBGATE the gate of the lane is shut')
end

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local looking = string.sub(ARGV[2], 1, 1) == '?'
local mark = ':' .. string.sub(ARGV[2], looking and 2 or 1) .. ':'
local function text(n) return string.format('%d', n) end
local function refusal(p)
  if p.retired then return 'retired', '' end
  if p.state == 'funding' or p.state == 'opening' then return 'not_open_yet', '' end
  if not (p.opens_at and p.expires_at and p.remaining) then return 'unavailable', '' end
  if now < p.opens_at then return 'not_open_yet', text(p.opens_at) end
end
local function look(p, users, profiles)
  local records = redis.call('HMGET', p.winners, unpack(users))
  local early = p.restricted and not p.outcome and redis.call('SMISMEMBER', p.eligible, unpack(users))
  local seen, rest, kept = {}, nil, nil
  for i = 1, #users do
    local user, record = users[i], records[i]
    if seen[user] then error('one user twice for one packet in a call') end
    seen[user] = true
    if record or early and early[i] == 0 then
      if not rest then
        rest, kept = {unpack(users, 1, i - 1)}, {}
        for n = 1, i - 1 do kept[n] = profiles[n] end
      end
      local outcome = record and (string.find(record, mark, 1, true) and 'won' or 'replayed') or 'not_eligible'
      local n = #p.others
      p.others[n + 1], p.others[n + 2], p.others[n + 3] = i, outcome, record or ''
    elseif rest then
      rest[#rest + 1] = user
      kept[#rest] = profiles[i]
    end
  end
  p.users, p.profiles = rest or users, kept or profiles
end
local function next_shares(p)
  local take = p.state == 'open' and now < p.expires_at and math.min(#p.users, p.remaining) or 0
  p.outcome, p.detail = p.remaining == take and 'sold_out' or 'expired', ''
  if take == 0 then return nil end
  if looking then
    p.outcome = 'unavailable'
    return nil
  end
  local shares = redis.call('LRANGE', p.shares, '0', text(take - 1))
  p.sum, p.best = string.match(shares[take] or '', '^%d+:%d+:(%d+):(%d+)$')
  if p.sum and p.id and p.app and p.claimed and redis.call('LLEN', p.shares) == p.remaining
    and (redis.call('LLEN', p.order) == 0) == (p.claimed == 0) then return shares end
  p.outcome = 'unavailable'
end

local packets = {}
for n = 1, (#ARGV - 2) / 2 do
  local key = 5 * n - 2
  local f = redis.call('HMGET', KEYS[key], 'state', 'id', 'app', 'opens_at', 'expires_at', 'restricted', 'remaining',
    'claimed_count', 'claimed_at', 'retired')
  local p = {
    key = KEYS[key], shares = KEYS[key + 1], winners = KEYS[key + 2], eligible = KEYS[key + 3], order = KEYS[key + 4],
    state = f[1], id = f[2], app = f[3], opens_at = tonumber(f[4]), expires_at = tonumber(f[5]), restricted = f[6] == '1',
    remaining = tonumber(f[7]), claimed = tonumber(f[8]), retired = f[10],
    at = math.max(now, tonumber(f[9]) or 0),
    others = {},
  }
  packets[n] = p
  if p.state then
    p.outcome, p.detail = refusal(p)
    local stated = ARGV[2 * n + 2]
    look(p, cmsgpack.unpack(ARGV[2 * n + 1]), stated ~= '' and cmsgpack.unpack(stated) or {})
    if not p.outcome then p.taken = next_shares(p) end
  else
    p.outcome, p.detail = 'not_found', ''
  end
end
local function hand_off(p, n, take, shares, at, won)
  local asked, stated = ARGV[2 * n + 1], ARGV[2 * n + 2]
  if #p.others > 0 or take < #p.users then
    asked = cmsgpack.pack({unpack(p.users, 1, take)})
    for i = take + 1, #p.users do p.profiles[i] = nil end
    stated = next(p.profiles) and cmsgpack.pack(p.profiles) or ''
  end
  local last = take == p.remaining and '1' or '0'
  redis.call('XADD', KEYS[2], '*', 'kind', 'claims', 'packet_id', p.id, 'app', p.app, 'at', at,
    'shares', shares, 'users', asked, 'profiles', stated, 'last', last,
    'epoch', epoch, 'seq', text(gate[3] + won + 1))
  return asked
end
for _, p in ipairs(packets) do
  if p.taken then
    for _, name in ipairs({'HSET', 'RPUSH', 'LTRIM'}) do
      if not redis.acl_check_cmd(name, p.key) then return redis.error_reply('NOPERM +' .. string.lower(name)) end
    end
    break
  end
end
local reply, won = {}, 0
for n, p in ipairs(packets) do
  local shares, at = '', ''
  if p.taken then
    local take, users, profiles = #p.taken, p.users, p.profiles
    shares, at = table.concat(p.taken, ' '), text(p.at)
    local winners = hand_off(p, n, take, shares, at, won)
    won = won + take
    local tail = ':' .. at .. mark
    local claims = {}
    for i = 1, take do
      claims[2 * i - 1] = users[i]
      claims[2 * i] = p.taken[i] .. tail .. (profiles[i] or '')
    end
    redis.call('HSET', p.winners, unpack(claims))
    redis.call('RPUSH', p.order, text(p.claimed) .. ':' .. winners)
    redis.call('LTRIM', p.shares, text(take), '-1')
    redis.call('HSET', p.key, 'remaining', text(p.remaining - take), 'claimed_count', text(p.claimed + take),
      'claimed_amount', p.sum, 'best', p.best, 'claimed_at', at)
  end
  local at_n = 5 * n - 4
  reply[at_n], reply[at_n + 1], reply[at_n + 2], reply[at_n + 3] = p.outcome, p.detail, shares, at
  reply[at_n + 4] = #p.others > 0 and cmsgpack.pack(p.others) or ''
end
local seq, grabs, changes = gate[3] + won, gate[5] + won, (gate[4] or 0) + won
if won > 0 then redis.call('HSET', KEYS[1], 'seq', text(seq), 'grabs', text(grabs), mine, text(changes)) end
reply[#reply + 1] = {seq, changes, grabs}
return reply
