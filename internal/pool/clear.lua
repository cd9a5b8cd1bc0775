#!lua flags=allow-oom
-- clear.lua removes keys of a lane while its gate is closed: what an older copy of
-- Redis holds must not be mixed with what is made again from MySQL (rule R9).
--
-- KEYS[1]  epoch of the lane, hash {epoch, gate, ...}
-- KEYS[+1] one key to remove
--
-- ARGV[1] epoch of the caller, under which the gate is closed
--
-- Returns how many of the keys were there. Replies with an error of code HBGATE, and
-- does nothing, unless the gate is closed in this epoch.

local gate = redis.call('HMGET', KEYS[1], 'epoch', 'gate')
if gate[1] ~= ARGV[1] or gate[2] ~= 'closed' then return redis.error_reply('HBGATE not closed in this epoch') end

local n = 0
for from = 2, #KEYS, 1000 do
  n = n + redis.call('UNLINK', unpack(KEYS, from, math.min(from + 999, #KEYS)))
end
return n
