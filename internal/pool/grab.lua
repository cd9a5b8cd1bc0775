#!lua
-- grab.lua decides grabs of one lane: for each packet those of some users, in the given
-- order. All reads and checks come first, then all writes: for each packet the claims
-- of its winners, its counters, and one hand-off for all of them. A repeated call
-- recognizes its own claims by their mark, and returns them as won again.
--
-- KEYS[1]  epoch of the lane
-- KEYS[2]  hand-off stream of the lane
-- KEYS[+1] packet hash
-- KEYS[+2] shares, list of "<index>:<amount>:<sum>:<best>", taken from the left; sum
--          and best are claimed_amount and best of the packet after this share
-- KEYS[+3] winners, hash of user id -> claim record
-- KEYS[+4] eligible user ids, set
-- KEYS[+5] winners in the order of their claims, list of "<number of earlier claims>:<user
--          ids as a MessagePack array>", one element a call
-- KEYS[+6] users who have won in a packet of the same campaign, set; read and written
--          only when the packet has wins_until, the expiry of this key
--
-- ARGV[1]  fencing token of the caller (epoch.go)
-- ARGV[2]  mark, unique to this call; with a ? before it nothing is taken, and a user
--          who could win gets unavailable
-- ARGV[+1] user ids as a MessagePack array, each once for a packet
-- ARGV[+2] their profiles as a MessagePack map: position in that array, from 1 -> JSON;
--          users without a profile are left out; empty when there is none
--
-- A claim record is "<share>:<claimed at ms>:<mark>:<profile>", share as in the list.
--
-- Returns a flat list of five elements a packet: outcome, detail, shares, claimed at ms,
-- others. Others is a MessagePack array {position, outcome, detail, ...} of users with a
-- result of their own, or empty. The remaining users, in order, won the shares, separated
-- by blanks. Outcome and detail are for remaining users without a share. Outcomes in
-- order of precedence, the first that applies (packet.GrabResult): not_found; replayed
-- (detail: claim record of an earlier grab); retired; not_open_yet (detail: opens_at in
-- ms, empty while funding); not_eligible; sold_out; expired; not_eligible (detail: won,
-- in another packet of the campaign); won (detail: claim record of this call's first
-- sending); unavailable (counters and shares disagree, nothing taken). The last element
-- holds the counts: {seq of the lane, changes of the process, grabs of the lane}.

-- The fence (R9): refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process, 'grabs')
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local dry_run = string.sub(ARGV[2], 1, 1) == '?'
local mark = ':' .. string.sub(ARGV[2], dry_run and 2 or 1) .. ':'
-- A number passed to a command is formatted with %.17g, which is measurably slower.
local function text(n) return string.format('%d', n) end

-- Returns the refusal that applies to every user without a claim; nil: grabs are possible.
local function refusal(p)
  if p.retired then return 'retired', '' end
  if p.state == 'funding' or p.state == 'opening' then return 'not_open_yet', '' end
  if not (p.opens_at and p.expires_at and p.remaining) then return 'unavailable', '' end
  if now < p.opens_at then return 'not_open_yet', text(p.opens_at) end
end

local function grabbable(p) return p.state == 'open' and now < p.expires_at and p.remaining > 0 end

-- The winners of this call, by the campaign's key.
local wins_of = {}

-- Splits the users of a packet: users with a result of their own go to p.others, the
-- remaining users and their profiles stay in p.users and p.profiles.
local function split_users(p, users, profiles)
  local records = redis.call('HMGET', p.winners, unpack(users))
  local early = p.restricted and not p.outcome and redis.call('SMISMEMBER', p.eligible, unpack(users))
  local has_won = p.wins_until and not p.outcome and grabbable(p) and redis.call('SMISMEMBER', p.wins, unpack(users))
  local winning = wins_of[p.wins] or {}
  local seen, rest, kept = {}, nil, nil
  for i = 1, #users do
    local user, record = users[i], records[i]
    if seen[user] then error('one user twice for one packet in a call') end
    seen[user] = true
    local uninvited, again = early and early[i] == 0, has_won and (has_won[i] == 1 or winning[user])
    if record or uninvited or again then
      if not rest then -- the first one: all earlier users remain
        rest, kept = {unpack(users, 1, i - 1)}, {}
        for n = 1, i - 1 do kept[n] = profiles[n] end
      end
      local outcome = record and (string.find(record, mark, 1, true) and 'won' or 'replayed') or 'not_eligible'
      local n = #p.others
      p.others[n + 1], p.others[n + 2], p.others[n + 3] = i, outcome, record or not uninvited and 'won' or ''
    elseif rest then
      rest[#rest + 1] = user
      kept[#rest] = profiles[i]
    end
  end
  p.users, p.profiles = rest or users, kept or profiles
end

-- Returns the shares that the remaining users take, and sets the outcome of users without
-- one. Counters and shares must agree; the last share holds the new counters.
local function next_shares(p)
  local take = grabbable(p) and math.min(#p.users, p.remaining) or 0
  p.outcome, p.detail = p.remaining == take and 'sold_out' or 'expired', ''
  if take == 0 then return nil end
  if dry_run then
    p.outcome = 'unavailable'
    return nil
  end
  local shares = redis.call('LRANGE', p.shares, '0', text(take - 1))
  p.sum, p.best = string.match(shares[take] or '', '^%d+:%d+:(%d+):(%d+)$')
  if p.sum and p.id and p.app and p.claimed and redis.call('LLEN', p.shares) == p.remaining
    and (redis.call('LLEN', p.order) == 0) == (p.claimed == 0) then
    if p.wins_until then
      wins_of[p.wins] = wins_of[p.wins] or {}
      for i = 1, take do wins_of[p.wins][p.users[i]] = true end
    end
    return shares
  end
  p.outcome = 'unavailable'
end

local packets = {}
for n = 1, (#ARGV - 2) / 2 do
  local key = 6 * n - 3
  local f = redis.call('HMGET', KEYS[key], 'state', 'id', 'app', 'opens_at', 'expires_at', 'restricted', 'remaining',
    'claimed_count', 'claimed_at', 'retired', 'wins_until')
  local p = {
    key = KEYS[key], shares = KEYS[key + 1], winners = KEYS[key + 2], eligible = KEYS[key + 3], order = KEYS[key + 4],
    wins = KEYS[key + 5], wins_until = f[11],
    state = f[1], id = f[2], app = f[3], opens_at = tonumber(f[4]), expires_at = tonumber(f[5]), restricted = f[6] == '1',
    remaining = tonumber(f[7]), claimed = tonumber(f[8]), retired = f[10],
    at = math.max(now, tonumber(f[9]) or 0), -- keeps claims in the order of time when the clock steps back
    others = {},
  }
  packets[n] = p
  if p.state then
    p.outcome, p.detail = refusal(p)
    local profiles = ARGV[2 * n + 2]
    split_users(p, cmsgpack.unpack(ARGV[2 * n + 1]), profiles ~= '' and cmsgpack.unpack(profiles) or {})
    if not p.outcome then p.taken = next_shares(p) end
  else
    p.outcome, p.detail = 'not_found', ''
  end
end

-- Writes the hand-off of a packet, after `won` claims of this call. It names winners only,
-- and returns them packed.
local function hand_off(p, n, take, shares, at, won)
  local users, profiles = ARGV[2 * n + 1], ARGV[2 * n + 2]
  if #p.others > 0 or take < #p.users then
    users = cmsgpack.pack({unpack(p.users, 1, take)})
    for i = take + 1, #p.users do p.profiles[i] = nil end
    profiles = next(p.profiles) and cmsgpack.pack(p.profiles) or ''
  end
  local last = take == p.remaining and '1' or '0'
  redis.call('XADD', KEYS[2], '*', 'kind', 'claims', 'packet_id', p.id, 'app', p.app, 'at', at,
    'shares', shares, 'users', users, 'profiles', profiles, 'last', last,
    'epoch', epoch, 'seq', text(fence[3] + won + 1))
  return users
end

-- An operator may revoke a right at any time. Redis checks rights command by command and
-- rolls nothing back, and half a grab would give one share to two users.
local commands = {}
for _, p in ipairs(packets) do
  if p.taken and p.wins_until then
    commands = {'HSET', 'RPUSH', 'LTRIM', 'SADD', 'PEXPIREAT'}
    break
  elseif p.taken then
    commands = {'HSET', 'RPUSH', 'LTRIM'}
  end
end
for _, name in ipairs(commands) do
  if not redis.acl_check_cmd(name, KEYS[3], '0', '0') then return redis.error_reply('NOPERM +' .. string.lower(name)) end
end

-- Only writes from here on. XADD comes first: a damaged key can make it fail.
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
    if p.wins_until then
      redis.call('SADD', p.wins, unpack(users, 1, take))
      redis.call('PEXPIREAT', p.wins, p.wins_until)
    end
    redis.call('RPUSH', p.order, text(p.claimed) .. ':' .. winners)
    redis.call('LTRIM', p.shares, text(take), '-1')
    redis.call('HSET', p.key, 'remaining', text(p.remaining - take), 'claimed_count', text(p.claimed + take),
      'claimed_amount', p.sum, 'best', p.best, 'claimed_at', at)
  end
  local at_n = 5 * n - 4
  reply[at_n], reply[at_n + 1], reply[at_n + 2], reply[at_n + 3] = p.outcome, p.detail, shares, at
  reply[at_n + 4] = #p.others > 0 and cmsgpack.pack(p.others) or ''
end
local seq, grabs, changes = fence[3] + won, fence[5] + won, (fence[4] or 0) + won
if won > 0 then redis.call('HSET', KEYS[1], 'seq', text(seq), 'grabs', text(grabs), process, text(changes)) end
reply[#reply + 1] = {seq, changes, grabs}
return reply
