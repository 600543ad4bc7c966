-- Claim a segment whose final files are to be written. The claim ends by itself; a newer fence
-- makes the older one worthless.
-- ARGV: owner, ttl ms
-- Returns {} or {segment, job, tenant, fence}.
local now = now_ms()
local seg = call('ZRANGEBYSCORE', P .. 'fin', '-inf', now, 'LIMIT', 0, 1)[1]
if not seg then return {} end
call('ZADD', P .. 'fin', now + tonumber(ARGV[2]), seg)
local fence = call('HINCRBY', P .. 's:' .. seg, 'fence', 1)
local h = call('HMGET', P .. 's:' .. seg, 'job', 'tenant')
call('HSET', P .. 's:' .. seg, 'finisher', ARGV[1])
return { seg, h[1], h[2], fence }
