-- Forget a segment that is over, or that was not started, with every key of it.
-- ARGV: segment, "1" to forget it only if it was not started
-- Returns 1, 0 when there is none to forget, -1 when it runs.
local seg = ARGV[1]
local key = P .. 's:' .. seg
local now = now_ms()
local h = call('HMGET', key, 'status', 'tenant', 'held')
if not h[1] or ARGV[2] == '1' and not h[3] then return 0 end
if h[1] == 'queued' and h[3] then
  call('HSET', key, 'status', 'cancelling', 'closing', 'cancelled')
  close_if_done(seg, now)
  call('ZREM', P .. 'fin', seg)
elseif h[1] == 'queued' or h[1] == 'cancelling' or h[1] == 'finalizing' then return -1 end
for _, lease in ipairs(call('ZRANGE', P .. 'exp', 0, -1)) do
  take_from_lease(lease, seg, call('SMEMBERS', P .. 'lr:' .. lease .. ':' .. seg))
  call('SREM', P .. 'ls:' .. lease, seg)
end
free_rows(seg)
call('UNLINK', key)
return 1
