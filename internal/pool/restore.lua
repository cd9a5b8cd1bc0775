#!lua flags=allow-oom
-- restore.lua writes a part of one key while the fence of its lane is closed, for a
-- rebuild from MySQL. A repeated call leaves a list that has the part unchanged.
--
-- KEYS[1] epoch of the lane, hash {epoch, gate, ...}
-- KEYS[2] key to write
--
-- ARGV[1]  epoch of the caller, in which the fence is closed
-- ARGV[2]  kind of the key: hash, list, set, zset, string, tombstone (a hash that is written
--          only when the key is missing), or retired (a hash that replaces the existing one)
-- ARGV[3]  of a list: number of elements before this part; of a string: number of bytes
--          before it; else 0
-- ARGV[4]  expiry of the key in ms, or 0: none
-- ARGV[+1] one element; of a hash name and value, of a zset score and member
--
-- Returns 1, or 0 when the list has another length (nothing changed). Replies with error
-- code HBFENCED, and changes nothing, unless the fence is closed in this epoch.

local fence = redis.call('HMGET', KEYS[1], 'epoch', 'gate')
if fence[1] ~= ARGV[1] or fence[2] ~= 'closed' then return redis.error_reply('HBFENCED the fence is not closed in this epoch') end

local kind, replaces = ARGV[2], ARGV[2] == 'retired'
if kind == 'tombstone' and redis.call('EXISTS', KEYS[2]) == 1 then return 1 end
if kind == 'tombstone' or replaces then kind = 'hash' end
local found = redis.call('TYPE', KEYS[2])['ok']
if found ~= 'none' and found ~= kind then return redis.error_reply('WRONGTYPE the key holds something else') end
if kind == 'list' then
  local have, before = redis.call('LLEN', KEYS[2]), tonumber(ARGV[3])
  if have == before + #ARGV - 4 then return 1 end
  if have ~= before then return 0 end
end

if replaces then redis.call('DEL', KEYS[2]) end
if kind == 'string' then
  redis.call('SETRANGE', KEYS[2], ARGV[3], ARGV[5])
  return 1
end
local write = ({hash = 'HSET', list = 'RPUSH', set = 'SADD', zset = 'ZADD'})[kind]
for from = 5, #ARGV, 1000 do
  redis.call(write, KEYS[2], unpack(ARGV, from, math.min(from + 999, #ARGV)))
end
if ARGV[4] ~= '0' then redis.call('PEXPIREAT', KEYS[2], ARGV[4]) end
return 1
