#!lua flags=allow-oom
-- raise.lua keeps a number that only rises: the copy of the number of MySQL's
-- books (rule R13).
--
-- KEYS[1] the number at one place
--
-- ARGV[1] the number
--
-- Returns the number that is kept now: the higher one.

local have = redis.call('GET', KEYS[1])
if have and tonumber(have) >= tonumber(ARGV[1]) then return tonumber(have) end
redis.call('SET', KEYS[1], ARGV[1])
return tonumber(ARGV[1])
