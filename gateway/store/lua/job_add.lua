-- Write the record of a batch unless there is one.
-- KEYS[1] hash of the batch
-- ARGV field, value, ...
-- Returns 1 when it was written.
if redis.call('HEXISTS', KEYS[1], 'facts') == 1 then
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
