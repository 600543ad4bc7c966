#!lua flags=allow-oom
-- Claim the batch that waited longest for validation, or hold on to one that was claimed.
-- KEYS[1] zset batch -> ms at which it may be claimed
-- ARGV[1] ms the claim lasts; ARGV[2] batch to hold on to, or "" to claim one
-- Returns the batch, or false when none is due or the held one is done.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local batch = ARGV[2]
if batch == '' then
  batch = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1)[1]
    -- no claim lasts that long: it was made before the clock was set back
    or redis.call('ZRANGEBYSCORE', KEYS[1], now + math.max(300000, 2 * ARGV[1]), '+inf', 'LIMIT', 0, 1)[1]
end
if not batch or not redis.call('ZSCORE', KEYS[1], batch) then
  return false
end
redis.call('ZADD', KEYS[1], 'XX', now + ARGV[1], batch)
return batch
