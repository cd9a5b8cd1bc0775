#!lua flags=allow-oom
-- orphans.lua finds orphaned hand-offs: read before, pending for no consumer, so that no
-- consumer would process or remove them. It stops at the first entry that is pending or
-- unread. Redis orphans entries when it starts from a file that ends in the middle of a
-- script's effects: it skips these effects, and applies them at its next start.
--
-- KEYS[1] hand-off stream of the lane
--
-- ARGV[1] consumer group
-- ARGV[2] maximum number of entries
--
-- Returns their ids. Changes nothing.

local ids = {}
if redis.call('EXISTS', KEYS[1]) == 0 then return ids end
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local of = {}
  for i = 1, #group, 2 do of[group[i]] = group[i + 1] end
  if of['name'] == ARGV[1] then
    local from = '-'
    while #ids < tonumber(ARGV[2]) do -- one by one: nearly always there is none, and entries may be large
      local entry = redis.call('XRANGE', KEYS[1], from, of['last-delivered-id'], 'COUNT', 1)[1]
      if not entry or #redis.call('XPENDING', KEYS[1], ARGV[1], entry[1], entry[1], 1) > 0 then break end
      ids[#ids + 1] = entry[1]
      from = '(' .. entry[1]
    end
  end
end
return ids
