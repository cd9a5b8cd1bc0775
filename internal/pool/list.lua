#!lua flags=allow-oom
-- list.lua puts claims of a lane's hand-offs among its claims by user, the oldest
-- hand-offs first: some at a time, so that Redis is not busy for long. Grabs leave
-- that for later; who reads claims by user, or removes a hand-off, has it done first.
--
-- KEYS[1] hand-off stream of the lane
-- KEYS[2] claims of the lane by user, sorted set of "<app>\0<user id>\0<claimed
--         at ms, 15 digits>\0<packet id>", all with score 0
-- KEYS[3] id of the last hand-off whose claims are in that set
--
-- ARGV[1] how many claims are enough for one call
--
-- Returns {id of the last hand-off that is done, id of the newest one; the same id when
-- nothing is left to do; how many claims are in that set}.

local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local listed = redis.call('GET', KEYS[3]) or '0-0'
local left = redis.call('ZCARD', KEYS[2]) -- fails when the key holds something else
if #newest == 0 or newest[1][1] == listed then return {listed, listed, left} end

-- A hand-off has one claim or hundreds, so they are read in steps that begin with one:
-- what is read and not listed now would be read again by every call.
local places, read, step = {}, 0, 1
while read < 100 and #places < 2 * ARGV[1] do
  local entries = redis.call('XRANGE', KEYS[1], '(' .. listed, '+', 'COUNT', step)
  if #entries == 0 then break end
  for _, entry in ipairs(entries) do
    local f = {}
    for i = 1, #entry[2], 2 do f[entry[2][i]] = entry[2][i + 1] end
    local ok, users = pcall(cmsgpack.unpack, f.users or '')
    if f.kind == 'claims' and ok and f.app and f.packet_id and tonumber(f.at) then -- else it is put aside by who reads it
      local owner, place = f.app .. '\0', '\0' .. string.format('%015.0f', f.at) .. '\0' .. f.packet_id
      for _, user in ipairs(users) do
        places[#places + 1] = '0'
        places[#places + 1] = owner .. user .. place
      end
    end
    listed = entry[1]
    if #places >= 2 * ARGV[1] then break end
  end
  read, step = read + #entries, math.min(2 * step, 16)
end
if read == 0 then return {listed, listed, left} end

redis.call('SET', KEYS[3], listed)
for from = 1, #places, 1000 do
  redis.call('ZADD', KEYS[2], unpack(places, from, math.min(from + 999, #places)))
end
return {listed, newest[1][1], redis.call('ZCARD', KEYS[2])}
