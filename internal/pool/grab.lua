#!lua
-- grab.lua decides grabs of one lane: for each packet those of some users, in the given
-- order. All reads and checks come first, then all writes. A repeated call recognizes its
-- own claims by their mark, and returns them as won again.
--
-- KEYS[1]  epoch of the lane
-- KEYS[2]  hand-off stream of the lane
-- KEYS[+1] packet hash; its field claimed is
--          "<count>:<amount>:<best share>:<its amount>:<time of the last claim in ms>",
--          all 0 without claims: in one field, because each field of a hash costs
--          more than a number of a text
-- KEYS[+2] shares, string of packed shares of 10 bytes: index (3) and amount (7),
--          big-endian; the count of them is taken, from the left
-- KEYS[+3] winners, hash of user id -> claim record
-- KEYS[+4] eligible user ids, set
-- KEYS[+5] users in the order of their claims, list
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
-- A claim record is "<share index>:<amount>:<claimed at ms>:<mark>:<profile>".
--
-- Returns a flat list of five elements a packet: outcome, detail, shares, claimed at ms,
-- others. Others is a MessagePack array {position, outcome, detail, ...} of users with a
-- result of their own, or empty. The remaining users, in order, won the packed shares.
-- Outcome and detail are for remaining users without a share. Outcomes in
-- order of precedence, the first that applies (packet.GrabResult): not_found; replayed
-- (detail: claim record of an earlier grab); retired; not_open_yet (detail: opens_at in
-- ms, empty while funding); not_eligible; sold_out; expired; not_eligible (detail: won,
-- in another packet of the campaign); won (detail: claim record of this call's first
-- sending); unavailable (counters and shares disagree, nothing taken). The last three
-- elements are the counts: seq of the lane, changes of the process, grabs of the lane.

-- The fence: refuse a caller of another epoch, and a lane that lacks acknowledged changes.
local epoch, seen_seq, process, seen_own = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+)$')
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'seq', process, 'grabs')
if fence[1] ~= epoch or fence[2] ~= 'open' or tonumber(fence[3]) < tonumber(seen_seq) or (tonumber(fence[4]) or 0) < tonumber(seen_own) then
  return redis.error_reply('HBFENCED the fence of the lane is closed')
end

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local dry_run = string.sub(ARGV[2], 1, 1) == '?'
local mark = ':' .. string.sub(ARGV[2], dry_run and 2 or 1) .. ':'
local share_len = 10
local format = string.format -- Redis prints a number in an argument as it likes, such as 1e+15

local reply, taking = {}, {} -- taking: one element for each packet with winners
local won_in = {} -- the winners of this call, by the campaign's key

for n = 1, (#ARGV - 2) / 2 do
  local key = 6 * n - 3
  local f = redis.call('HMGET', KEYS[key], 'state', 'claimed', 'opens_at', 'expires_at', 'share_count', 'restricted', 'wins_until',
    'id', 'app', 'retired')
  local state, opens_at, expires_at, share_count = f[1], tonumber(f[3]), tonumber(f[4]), tonumber(f[5])
  local wins_until, id, app = f[7], f[8], f[9]
  local claimed, sum, best, most, last_at = string.match(f[2] or '', '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
  local remaining = claimed and share_count and share_count - claimed

  -- The refusal that applies to every user without a claim; nil: grabs are possible.
  local outcome, detail = nil, ''
  if not state then outcome = 'not_found'
  elseif f[10] then outcome = 'retired'
  elseif state == 'funding' or state == 'opening' then outcome = 'not_open_yet'
  elseif not (opens_at and expires_at and remaining) then outcome = 'unavailable'
  elseif now < opens_at then outcome, detail = 'not_open_yet', format('%d', opens_at)
  end
  local grabbable = not outcome and state == 'open' and now < expires_at and remaining > 0

  -- Users with a result of their own go to others; users and profiles keep the remaining ones.
  local users, profiles, others = {}, {}, {}
  if state then
    users = cmsgpack.unpack(ARGV[2 * n + 1])
    if ARGV[2 * n + 2] ~= '' then profiles = cmsgpack.unpack(ARGV[2 * n + 2]) end
    local records = redis.call('HMGET', KEYS[key + 2], unpack(users))
    local guests = f[6] == '1' and not outcome and redis.call('SMISMEMBER', KEYS[key + 3], unpack(users))
    local before = wins_until and grabbable and redis.call('SMISMEMBER', KEYS[key + 5], unpack(users))
    local within, seen = won_in[KEYS[key + 5]] or {}, {}
    for i = 1, #users do
      local user = users[i]
      if seen[user] then error('one user twice for one packet in a call') end
      seen[user] = true
      local record, own = records[i], nil
      if record then own, record = string.find(record, mark, 1, true) and 'won' or 'replayed', record
      elseif guests and guests[i] == 0 then own, record = 'not_eligible', ''
      elseif before and (before[i] == 1 or within[user]) then own, record = 'not_eligible', 'won'
      end
      if own then
        local at = #others
        others[at + 1], others[at + 2], others[at + 3] = i, own, record
        users[i] = false
      end
    end
    if #others > 0 then
      local rest, kept = {}, {}
      for i = 1, #users do
        if users[i] then
          rest[#rest + 1] = users[i]
          kept[#rest] = profiles[i]
        end
      end
      users, profiles = rest, kept
    end
  end

  -- The shares that the remaining users take. The string must end where remaining says: a
  -- string of another length yields more or fewer bytes.
  local take = grabbable and math.min(#users, remaining) or 0
  if not outcome then outcome = remaining == take and 'sold_out' or 'expired' end
  local shares = ''
  if take > 0 then
    claimed, sum, most = tonumber(claimed), tonumber(sum), tonumber(most)
    if not dry_run and id and app and (claimed == 0) == (most == 0) then
      shares = redis.call('GETRANGE', KEYS[key + 1], format('%d', share_len * claimed),
        format('%d', share_len * (take - remaining) - 1))
    end
    if #shares ~= share_len * take then outcome, shares, take = 'unavailable', '', 0 end
  end
  local at = format('%d', math.max(now, tonumber(last_at) or 0)) -- keeps claims in the order of time when the clock steps back
  local claims, tail = {}, ':' .. at .. mark
  local unpacked = take > 0 and {struct.unpack('>' .. string.rep('I3I7', take), shares)} -- index, amount, index, ...
  for i = 1, take do
    local index, amount = unpacked[2 * i - 1], unpacked[2 * i]
    if amount == 0 or index >= share_count then
      outcome, shares, take = 'unavailable', '', 0
      break
    end
    sum = sum + amount
    if amount > most then best, most = index, amount end -- of equal amounts the first is luckier
    claims[2 * i - 1] = users[i]
    claims[2 * i] = format('%d:%d', index, amount) .. tail .. (profiles[i] or '')
  end
  if take > 0 then
    local winners, theirs = ARGV[2 * n + 1], ARGV[2 * n + 2]
    if #others > 0 or take < #users then
      winners = cmsgpack.pack({unpack(users, 1, take)})
      for i = take + 1, #users do profiles[i] = nil end
      theirs = next(profiles) and cmsgpack.pack(profiles) or ''
    end
    if wins_until then
      local within = won_in[KEYS[key + 5]] or {}
      won_in[KEYS[key + 5]] = within
      for i = 1, take do within[users[i]] = true end
    end
    taking[#taking + 1] = {
      key = key, take = take, last = remaining == take, claims = claims, users = users, wins_until = wins_until,
      claimed = format('%d:%d:%d:%d:%s', claimed + take, sum, best, most, at), id = id,
      at = at, shares = shares, app = app, winners = winners, profiles = theirs,
    }
  end
  local to = 5 * n - 4
  reply[to], reply[to + 1], reply[to + 2], reply[to + 3] = outcome, detail, shares, take > 0 and at or ''
  reply[to + 4] = #others > 0 and cmsgpack.pack(others) or ''
end

-- Only writes from here on. Redis undoes nothing when a command is refused, because an
-- operator revoked a right. In this order a stop gives nothing twice: a share is taken
-- before it is anybody's, and a claim is written before its hand-off (R11).
local won = 0
for _, p in ipairs(taking) do
  if p.wins_until then
    redis.call('SADD', KEYS[p.key + 5], unpack(p.users, 1, p.take))
    redis.call('PEXPIREAT', KEYS[p.key + 5], p.wins_until)
  end
  redis.call('HSET', KEYS[p.key], 'claimed', p.claimed)
  redis.call('HSET', KEYS[p.key + 2], unpack(p.claims))
end
local entry = {} -- packet id, part, packet id, ...
for _, p in ipairs(taking) do
  entry[#entry + 1] = p.id
  entry[#entry + 1] = cmsgpack.pack(epoch, fence[3] + won + 1, p.app, p.at, p.last, p.shares, p.winners, p.profiles)
  won = won + p.take
end
local seq, changes, grabs = fence[3] + won, (fence[4] or 0) + won, fence[5] + won
if won > 0 then
  redis.call('XADD', KEYS[2], '*', 'kind', 'claims', unpack(entry))
  redis.call('HSET', KEYS[1], 'seq', format('%d', seq), 'grabs', format('%d', grabs), process, format('%d', changes))
end
for _, p in ipairs(taking) do
  redis.call('RPUSH', KEYS[p.key + 4], unpack(p.users, 1, p.take))
end
local to = #reply
reply[to + 1], reply[to + 2], reply[to + 3] = seq, changes, grabs
return reply
