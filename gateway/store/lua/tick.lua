-- What time alone brings: retries that are due, deadlines that passed, graces that are over.
-- A clock that leapt forward expires nothing until an operator confirms it. When it was set back, what
-- waits for a time is moved along, so that nothing waits longer for that.
-- ARGV: most of each, grace ms, what the clock should be at least according to the caller (0: it
--       cannot tell), ms by which it may be ahead of that
-- Returns {promoted, expired, now, jump}.
local now = now_ms()

local function move(key, by)
  local found = call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #found, 2 do call('ZADD', key, found[i + 1] + by, found[i]) end
end

local seen = num(call('HGET', KEYS[1], 'seen'))
if now < seen - 1000 then
  for _, name in ipairs({ 'exp', 'later', 'fin', 'grace' }) do move(P .. name, now - seen) end
  for _, seg in ipairs(call('ZRANGE', P .. 'edf', 0, -1)) do move(P .. 'r:' .. seg, now - seen) end
end
if math.abs(now - seen) > 1000 and call('EXISTS', KEYS[1]) == 1 then call('HSET', KEYS[1], 'seen', now) end
local expected, ahead = tonumber(ARGV[3]), tonumber(ARGV[4])
if expected > 0 and now - expected > ahead then call('HSET', KEYS[1], 'jump', now - expected) end
local jump = num(call('HGET', KEYS[1], 'jump'))
local due = call('ZRANGEBYSCORE', P .. 'later', '-inf', now, 'LIMIT', 0, ARGV[1])
for _, seg in ipairs(due) do
  local h = call('HMGET', P .. 's:' .. seg, 'tenant', 'deadline', 'prio')
  make_ready(seg, h[1], num(h[2]), num(h[3]))
end
if #due > 0 then wake() end
local late = jump > 0 and {} or call('ZRANGEBYSCORE', P .. 'edf', '-inf', now, 'LIMIT', 0, ARGV[1])
for _, seg in ipairs(late) do
  local h = call('HMGET', P .. 's:' .. seg, 'tenant', 'leased')
  leave_queue(seg, h[1])
  local grace = now + tonumber(ARGV[2])
  call('HSET', P .. 's:' .. seg, 'status', 'cancelling', 'closing', 'expired', 'grace', grace,
    'caught', h[2] or 0)
  call('ZADD', P .. 'grace', grace, seg)
  close_if_done(seg, now)
end
for _, seg in ipairs(call('ZRANGEBYSCORE', P .. 'grace', '-inf', now, 'LIMIT', 0, ARGV[1])) do
  close_if_done(seg, now)
end
return { #due, #late, now, jump }
