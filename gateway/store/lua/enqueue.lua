-- Add a segment; adding it again changes nothing.
-- ARGV: segment, job, tenant, model, endpoint, weight, window ms, priority, input ref, index ref,
--       sum of tokens, tokens blob, "1" when the sender has listed this shard before,
--       ms before which no row is leased
-- Returns 1 new, 0 exists, -1 nothing was added: the shard is new here and must be listed first.
local seg, tenant = ARGV[1], ARGV[3]
if call('EXISTS', KEYS[1]) == 0 then
  if ARGV[13] == '1' then return -1 end
  call('HSET', KEYS[1], 'v', 1)
end
local key = P .. 's:' .. seg
if call('EXISTS', key) == 1 then return 0 end
local n = #ARGV[12] / 4
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
call('ZADD', P .. 'edf', deadline, seg)
if delay > 0 then
  call('HSET', key, 'nb', now + delay)
  call('ZADD', P .. 'later', now + delay, seg)
else
  make_ready(seg, tenant, deadline, prio)
  wake()
end
return 1
