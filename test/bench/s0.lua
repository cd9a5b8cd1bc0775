-- s0.lua is the baseline: the well-known way to hand out a red packet with Redis,
-- reimplemented after its published design. The whole grab is one script; the
-- envelope moves from one list to another and the user into a map. The user id
-- comes as a key, as it does there.
--
-- KEYS[1] list of envelopes to take, each {"id":..,"money":..}
-- KEYS[2] list of envelopes taken, each with the user
-- KEYS[3] hash of users who have one
-- KEYS[4] user id
--
-- Returns the envelope with the user in it; nil when the user has one already or
-- when none is left.

if redis.call('HEXISTS', KEYS[3], KEYS[4]) ~= 0 then
  return nil
end
local envelope = redis.call('RPOP', KEYS[1])
if not envelope then
  return nil
end
local taken = cjson.decode(envelope)
taken['userId'] = KEYS[4]
local record = cjson.encode(taken)
redis.call('HSET', KEYS[3], KEYS[4], KEYS[4])
redis.call('LPUSH', KEYS[2], record)
return record
