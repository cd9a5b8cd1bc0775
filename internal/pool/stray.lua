#!lua flags=allow-oom
-- stray.lua finds hand-offs that were read and that no reader has any more, so that
-- nobody would ever carry or remove them: from the oldest entry on, up to the first that
-- a reader has or that nobody has read. Redis makes such entries when it starts from a
-- file that ends in the middle of a script's effects: it leaves them out, and brings
-- those that the file has back at its next start.
--
-- KEYS[1] hand-off stream of the lane
--
-- ARGV[1] group
-- ARGV[2] most entries
--
-- Returns their ids. Changes nothing.

local ids = {}
if redis.call('EXISTS', KEYS[1]) == 0 then return ids end
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local of = {}
  for i = 1, #group, 2 do of[group[i]] = group[i + 1] end
  if of['name'] == ARGV[1] then
    local from = '-'
    while #ids < tonumber(ARGV[2]) do -- one by one: the first is none nearly always, and they may be large
      local entry = redis.call('XRANGE', KEYS[1], from, of['last-delivered-id'], 'COUNT', 1)[1]
      if not entry or #redis.call('XPENDING', KEYS[1], ARGV[1], entry[1], entry[1], 1) > 0 then break end
      ids[#ids + 1] = entry[1]
      from = '(' .. entry[1]
    end
  end
end
return ids
