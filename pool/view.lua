#!lua flags=no-writes
-- view.lua reads a packet together with the time at which that was so.
--
-- KEYS[1] packet hash, or its tombstone
--
-- Returns {now in ms, packet hash as a flat list, empty when there is none}.

local t = redis.call('TIME')
return {t[1] * 1000 + math.floor(t[2] / 1000), redis.call('HGETALL', KEYS[1])}
