-- s0_batch.lua is s0.lua for many users in one call, the batching that its author
-- proposes for scale. Written for this benchmark.
--
-- KEYS[1] list of envelopes to take, each {"id":..,"money":..}
-- KEYS[2] list of envelopes taken, each with the user
-- KEYS[3] hash of users who have one
-- ARGV    user ids
--
-- Returns for each user the envelope with the user in it; "" when the user has one
-- already or when none is left.

local out = {}
for i = 1, #ARGV do
  out[i] = ''
  if redis.call('HEXISTS', KEYS[3], ARGV[i]) == 0 then
    local envelope = redis.call('RPOP', KEYS[1])
    if envelope then
      local taken = cjson.decode(envelope)
      taken['userId'] = ARGV[i]
      out[i] = cjson.encode(taken)
      redis.call('HSET', KEYS[3], ARGV[i], ARGV[i])
      redis.call('LPUSH', KEYS[2], out[i])
    end
  end
end
return out
