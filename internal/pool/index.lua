#!lua flags=allow-oom
-- index.lua adds claims of a lane's hand-offs to its claims by user, oldest hand-off
-- first, in bounded steps. Grabs do not index: a call that removes a hand-off does so
-- first, and readers of claims by user read the hand-offs that are left.
--
-- KEYS[1] hand-off stream of the lane
-- KEYS[2] claims of the lane by user, sorted set of "<app>\0<user id>\0<claimed
--         at ms, 15 digits>\0<packet id>", all with score 0
-- KEYS[3] id of the last hand-off that is indexed
--
-- ARGV[1] number of claims after which one call ends
--
-- Returns {id of the last hand-off that is indexed, id of the newest one (the same id
-- when all are indexed)}.

local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local listed = redis.call('GET', KEYS[3]) or '0-0'
redis.call('ZCARD', KEYS[2]) -- fails when the key holds something else
if #newest == 0 or newest[1][1] == listed then return {listed, listed} end

-- A hand-off has from one to hundreds of claims. Steps begin with one entry, because
-- entries beyond the limit would be read again by the next call.
local members, read, step = {}, 0, 1
while read < 100 and #members < 2 * ARGV[1] do
  local entries = redis.call('XRANGE', KEYS[1], '(' .. listed, '+', 'COUNT', step)
  if #entries == 0 then break end
  for _, entry in ipairs(entries) do
    local fields, claims = entry[2], false
    for i = 1, #fields, 2 do claims = claims or fields[i] == 'kind' and fields[i + 1] == 'claims' end
    for i = 1, claims and #fields or 0, 2 do
      local ok, _, _, app, at, _, _, packed = pcall(cmsgpack.unpack, fields[i + 1])
      local also_ok, users = pcall(cmsgpack.unpack, packed)
      -- else its reader quarantines it
      if fields[i] ~= 'kind' and ok and also_ok and type(users) == 'table' and type(app) == 'string' and tonumber(at) then
        local owner, member = app .. '\0', '\0' .. string.format('%015.0f', at) .. '\0' .. fields[i]
        for _, user in ipairs(users) do
          members[#members + 1] = '0'
          members[#members + 1] = owner .. user .. member
        end
      end
    end
    listed = entry[1]
    if #members >= 2 * ARGV[1] then break end
  end
  read, step = read + #entries, math.min(2 * step, 16)
end
if read == 0 then return {listed, listed} end

redis.call('SET', KEYS[3], listed)
for from = 1, #members, 1000 do
  redis.call('ZADD', KEYS[2], unpack(members, from, math.min(from + 999, #members)))
end
return {listed, newest[1][1]}
