-- Add a segment; adding it again changes nothing.
-- ARGV: segment, job, tenant, model, endpoint, weight, window ms, priority, input ref, index ref,
--       sum of tokens, tokens blob, "1" when the sender has listed this shard before,
--       ms before which no row is leased, most rows and most tokens the tenant may have queued
--       (0: any number), "1" when it is held until it is started
-- Returns {1} new, {0} exists; and when nothing was added: {-1}, the shard is new here and must be
-- listed first, or {-2 rows or -3 tokens, queued}, the tenant would have too many.
local seg, tenant = ARGV[1], ARGV[3]
local key = P .. 's:' .. seg
local there = call('EXISTS', KEYS[1], key)
if there == 2 then return { 0 } end
if there == 0 then
  if ARGV[13] == '1' then return { -1 } end
  call('HSET', KEYS[1], 'v', 1)
end
local n = #ARGV[12] / 4
local most_rows, most_tokens = tonumber(ARGV[15]), tonumber(ARGV[16])
local queued = call('HMGET', P .. 'tn:' .. tenant, 'rows', 'tokens')
if most_rows > 0 and num(queued[1]) + n > most_rows then return { -2, num(queued[1]) } end
if most_tokens > 0 and num(queued[2]) + ARGV[11] > most_tokens then return { -3, num(queued[2]) } end
local now = now_ms()
local delay = tonumber(ARGV[14])
add_segment(0, now, queued)
if delay > 0 then call('HSET', key, 'nb', now + delay) end
if ARGV[17] == '1' then
  call('HSET', key, 'held', 1)
elseif delay > 0 then
  call('ZADD', P .. 'later', now + delay, seg)
else
  call('ZADD', P .. 'q:' .. tenant, effective(now + tonumber(ARGV[7]), tonumber(ARGV[8])), seg)
  activate(tenant)
  wake()
end
return { 1 }
