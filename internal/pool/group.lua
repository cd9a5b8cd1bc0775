#!lua flags=allow-oom
-- group.lua creates the consumer group of a lane's hand-offs, starting at the first
-- entry, and the stream when it is missing. An existing group stays.
--
-- KEYS[1] hand-off stream of the lane
--
-- ARGV[1] consumer group
--
-- Returns 1 when the group was created, else 0.

if redis.call('EXISTS', KEYS[1]) == 1 then
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    for i = 1, #group, 2 do
      if group[i] == 'name' and group[i + 1] == ARGV[1] then return 0 end
    end
  end
end
redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
return 1
