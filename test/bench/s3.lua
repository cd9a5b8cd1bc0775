-- s3.lua is the grab of baseline S3, reimplemented after its published design:
-- pre-split list, task queue, draw hash, and a counter of each user's tries that
-- counts empty packets too.
--
-- KEYS[1] list of shares to take
-- KEYS[2] list of tasks for payment workers, each "share:user"
-- KEYS[3] hash of users and the shares they drew
-- KEYS[4] hash of users and their tries
-- ARGV[1] user id
-- ARGV[2] how many tries a user has
--
-- Returns {outcome, share}: won or had with the share, none or barred with -1.

local mine = redis.call('HGET', KEYS[3], ARGV[1])
if mine then
  return {'had', mine}
end
if redis.call('HINCRBY', KEYS[4], ARGV[1], 1) > tonumber(ARGV[2]) then
  return {'barred', '-1'}
end
local share = redis.call('RPOP', KEYS[1])
if not share then
  return {'none', '-1'}
end
redis.call('HSET', KEYS[3], ARGV[1], share)
redis.call('LPUSH', KEYS[2], share .. ':' .. ARGV[1])
return {'won', share}
