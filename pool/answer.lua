#!lua
-- answer.lua stores what the create request was answered first. The first one
-- stays; every caller gets it.
--
-- KEYS[1] packet hash, or its tombstone
--
-- ARGV[1] first answer as JSON
--
-- Returns the first answer, or false when there is no packet.

if redis.call('EXISTS', KEYS[1]) == 0 then return false end
redis.call('HSETNX', KEYS[1], 'first', ARGV[1])
return redis.call('HGET', KEYS[1], 'first')
