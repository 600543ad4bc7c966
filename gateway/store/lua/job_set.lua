#!lua flags=allow-oom
-- Write fields of the record of a batch; one that was lost does not come back as a torso. Also when
-- memory is full: a batch that ends frees more than they take.
-- KEYS[1] hash of the batch
-- ARGV field, value, ...
-- Returns 1 when there is a record.
if redis.call('HEXISTS', KEYS[1], 'facts') == 0 then
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
