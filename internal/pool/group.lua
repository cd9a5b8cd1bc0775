#!lua flags=allow-oom
-- group.lua makes the consumer group of a lane's hand-offs, so that it begins with the
-- first of them; the stream too when there is none. A group that is there stays.
--
-- KEYS[1] hand-off stream of the lane
--
-- ARGV[1] group
--
-- Returns 1 when the group was made, else 0.

if redis.call('EXISTS', KEYS[1]) == 1 then
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    for i = 1, #group, 2 do
      if group[i] == 'name' and group[i + 1] == ARGV[1] then return 0 end
    end
  end
end
redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
return 1
