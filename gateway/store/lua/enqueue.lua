-- Add a segment; adding it again changes nothing.
-- ARGV: segment, job, tenant, model, endpoint, weight, window ms, priority, input ref, index ref,
--       sum of tokens, tokens blob, "1" when the sender has listed this shard before,
--       ms before which no row is leased, most rows and most tokens the tenant may have queued
--       (0: any number), "1" when it is held until it is started
-- Returns {1} new, {0} exists; and when nothing was added: {-1}, the shard is new here and must be
-- listed first, or {-2 rows or -3 tokens, queued}, the tenant would have too many.
local seg, tenant = ARGV[1], ARGV[3]
if call('EXISTS', KEYS[1]) == 0 then
  if ARGV[13] == '1' then return { -1 } end
  call('HSET', KEYS[1], 'v', 1)
end
local key = P .. 's:' .. seg
if call('EXISTS', key) == 1 then return { 0 } end
local n = #ARGV[12] / 4
local most_rows, most_tokens = tonumber(ARGV[15]), tonumber(ARGV[16])
local queued = call('HMGET', P .. 'tn:' .. tenant, 'rows', 'tokens')
if most_rows > 0 and num(queued[1]) + n > most_rows then return { -2, num(queued[1]) } end
if most_tokens > 0 and num(queued[2]) + ARGV[11] > most_tokens then return { -3, num(queued[2]) } end
local now = now_ms()
local deadline = now + tonumber(ARGV[7])
local prio, delay = tonumber(ARGV[8]), tonumber(ARGV[14])
call('HSET', key, 'job', ARGV[2], 'tenant', tenant, 'model', ARGV[4], 'endpoint', ARGV[5],
  'weight', ARGV[6], 'n', n, 'cur', 0, 'status', 'queued', 'deadline', deadline, 'prio', prio,
  'in', ARGV[9], 'ix', ARGV[10], 'tokens', ARGV[11], 'open', ARGV[11])
call('SADD', P .. 'tenants', tenant)
call('SET', P .. 'k:' .. seg, ARGV[12])
call('HSET', P .. 'tn:' .. tenant, 'weight', ARGV[6])
call('HINCRBY', P .. 'tn:' .. tenant, 'rows', n)
call('HINCRBY', P .. 'tn:' .. tenant, 'tokens', ARGV[11])
call('ZADD', P .. 'edf', deadline, seg)
if delay > 0 then call('HSET', key, 'nb', now + delay) end
if ARGV[17] == '1' then
  call('HSET', key, 'held', 1)
elseif delay > 0 then
  call('ZADD', P .. 'later', now + delay, seg)
else
  make_ready(seg, tenant, deadline, prio)
  wake()
end
return { 1 }
