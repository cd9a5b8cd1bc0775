#!lua flags=allow-oom
-- ack.lua removes hand-offs for good: nobody has them any more, and they are gone. A
-- transaction would be refused when Redis is at its limit of memory, whatever is in it.
--
-- KEYS[1] hand-off stream of the lane
--
-- ARGV[1]  group
-- ARGV[+1] id of one hand-off
--
-- Returns how many of them were there.

local n = 0
for from = 2, #ARGV, 1000 do
  local to = math.min(from + 999, #ARGV)
  redis.call('XACK', KEYS[1], ARGV[1], unpack(ARGV, from, to))
  n = n + redis.call('XDEL', KEYS[1], unpack(ARGV, from, to))
end
return n
