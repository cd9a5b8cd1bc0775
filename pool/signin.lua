#!lua flags=allow-oom
-- signin.lua counts sign-ins that failed, of one address and of all together, over
-- all processes. A count begins with the first failure and is forgotten a span of
-- time after it, whatever comes meanwhile.
--
-- KEYS[1] failures of the address
-- KEYS[2] failures of all
--
-- ARGV[1] how many to add; 0 only asks
-- ARGV[2] the span in ms
--
-- Returns the count of the address and that of all, after adding.

local add = tonumber(ARGV[1])
local span = tonumber(ARGV[2])
local counts = {}
for i = 1, 2 do
  counts[i] = (tonumber(redis.call('GET', KEYS[i])) or 0) + add
end
if add > 0 then
  for i = 1, 2 do
    if counts[i] == add then
      redis.call('SET', KEYS[i], add, 'PX', span)
    else
      redis.call('INCRBY', KEYS[i], add)
    end
  end
end
return counts
