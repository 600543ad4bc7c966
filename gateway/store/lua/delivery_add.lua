#!lua flags=allow-oom
-- Note a delivery that is to be made; one that was noted before is left as it is.
-- KEYS[1] hash of the delivery, KEYS[2] zset delivery -> ms at which it is due
-- ARGV[1] delivery, ARGV[2] seconds it is remembered, ARGV[3] due ms; then field, value, ...
-- Returns 1 when it was made (or given up) already.
if redis.call('EXISTS', KEYS[1]) == 1 then
  if redis.call('HEXISTS', KEYS[1], 'done') == 1 then return 1 end
  redis.call('ZADD', KEYS[2], 'NX', ARGV[3], ARGV[1])
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
redis.call('EXPIRE', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
return 0
