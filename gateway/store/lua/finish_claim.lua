-- Claim a segment whose final files are to be written. The claim ends by itself; a newer fence
-- makes the older one worthless.
-- ARGV: owner, ttl ms
-- Returns {} or {segment, job, tenant, fence, closing, ok, bad, caught, prompt, completion,
-- cached, reasoning, reference of the first row or ""}.
local now = now_ms()
local seg = call('ZRANGEBYSCORE', P .. 'fin', '-inf', now, 'LIMIT', 0, 1)[1]
if not seg then return {} end
call('ZADD', P .. 'fin', now + tonumber(ARGV[2]), seg)
local fence = call('HINCRBY', P .. 's:' .. seg, 'fence', 1)
local h = call('HMGET', P .. 's:' .. seg, 'job', 'tenant', 'closing', 'ok', 'bad', 'prompt', 'completion', 'cached',
  'reasoning', 'caught')
call('HSET', P .. 's:' .. seg, 'finisher', ARGV[1])
return { seg, h[1], h[2], fence, h[3], num(h[4]), num(h[5]), num(h[10]), num(h[6]), num(h[7]), num(h[8]), num(h[9]),
  call('GETRANGE', P .. 'f:' .. seg, 0, 15) }
