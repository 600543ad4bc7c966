-- What time alone brings: retries that are due, deadlines that passed, graces that are over.
-- ARGV: most of each, grace ms
-- Returns {promoted, expired}.
local now = now_ms()
local due = call('ZRANGEBYSCORE', P .. 'later', '-inf', now, 'LIMIT', 0, ARGV[1])
for _, seg in ipairs(due) do
  local h = call('HMGET', P .. 's:' .. seg, 'tenant', 'deadline', 'prio')
  make_ready(seg, h[1], num(h[2]), num(h[3]))
end
if #due > 0 then wake() end
local late = call('ZRANGEBYSCORE', P .. 'edf', '-inf', now, 'LIMIT', 0, ARGV[1])
for _, seg in ipairs(late) do
  leave_queue(seg, call('HGET', P .. 's:' .. seg, 'tenant'))
  local grace = now + tonumber(ARGV[2])
  call('HSET', P .. 's:' .. seg, 'status', 'cancelling', 'closing', 'expired', 'grace', grace)
  call('ZADD', P .. 'grace', grace, seg)
  close_if_done(seg, now)
end
for _, seg in ipairs(call('ZRANGEBYSCORE', P .. 'grace', '-inf', now, 'LIMIT', 0, ARGV[1])) do
  close_if_done(seg, now)
end
return { #due, #late }
