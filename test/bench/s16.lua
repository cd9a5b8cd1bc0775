-- s16.lua is the grab of baseline S1.6: a share leaves its list, and an order for
-- it joins the list of orders.
--
-- KEYS[1] list of shares to take
-- KEYS[2] hash of users and their shares
-- KEYS[3] list of orders, each "share:user"
-- ARGV[1] user id
--
-- Returns {outcome, share}: won or had with the share, none with -1.

local mine = redis.call('HGET', KEYS[2], ARGV[1])
if mine then
  return {'had', mine}
end
local share = redis.call('RPOP', KEYS[1])
if not share then
  return {'none', '-1'}
end
redis.call('HSET', KEYS[2], ARGV[1], share)
redis.call('LPUSH', KEYS[3], share .. ':' .. ARGV[1])
return {'won', share}
