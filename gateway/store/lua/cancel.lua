-- Stop a segment: no row of it is leased again; rows in flight may commit during the grace.
-- ARGV: segment, grace ms
-- Returns {status before, status after}, or {} when there is no such segment.
local seg = ARGV[1]
local now = now_ms()
local before = call('HGET', P .. 's:' .. seg, 'status')
if not before then return {} end
if before == 'queued' then
  leave_queue(seg, call('HGET', P .. 's:' .. seg, 'tenant'))
  local grace = now + tonumber(ARGV[2])
  call('HSET', P .. 's:' .. seg, 'status', 'cancelling', 'closing', 'cancelled', 'grace', grace)
  call('ZADD', P .. 'grace', grace, seg)
  close_if_done(seg, now)
end
return { before, call('HGET', P .. 's:' .. seg, 'status') }
