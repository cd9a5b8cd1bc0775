#!lua flags=allow-oom
-- raise.lua stores a number that only increases: the copy of MySQL's restore counter,
-- books.number.
--
-- KEYS[1] one copy of the number
--
-- ARGV[1] the number
--
-- Returns the stored number: the higher one.

local have = redis.call('GET', KEYS[1])
if have and tonumber(have) >= tonumber(ARGV[1]) then return tonumber(have) end
redis.call('SET', KEYS[1], ARGV[1])
return tonumber(ARGV[1])
