#!lua flags=allow-oom
-- ack.lua acknowledges and deletes hand-offs. A script, because Redis refuses a
-- transaction at its memory limit, even one that only deletes.
--
-- KEYS[1] hand-off stream of the lane
--
-- ARGV[1]  consumer group
-- ARGV[+1] id of one hand-off
--
-- Returns the number of hand-offs deleted.

local n = 0
for from = 2, #ARGV, 1000 do
  local to = math.min(from + 999, #ARGV)
  redis.call('XACK', KEYS[1], ARGV[1], unpack(ARGV, from, to))
  n = n + redis.call('XDEL', KEYS[1], unpack(ARGV, from, to))
end
return n
