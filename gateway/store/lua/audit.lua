-- Check what must always hold. Returns one sentence per violation.
local wrong, open, tokens = {}, {}, {}
local leased = {}

local function check(good, text)
  if not good then wrong[#wrong + 1] = text end
end

for _, lease in ipairs(call('ZRANGE', P .. 'exp', 0, -1)) do
  local left = 0
  for _, seg in ipairs(call('SMEMBERS', P .. 'ls:' .. lease)) do
    local rows = call('SMEMBERS', P .. 'lr:' .. lease .. ':' .. seg)
    left = left + #rows
    local count = leased[seg] or { all = 0, open = 0 }
    leased[seg] = count
    count.all = count.all + #rows
    for _, row in ipairs(rows) do
      if call('GETBIT', P .. 'd:' .. seg, row) == 0 then count.open = count.open + 1 end
    end
  end
  check(left == num(call('HGET', P .. 'l:' .. lease, 'left')), 'lease ' .. lease .. ': left is not its rows')
end

local segments = call('ZRANGE', P .. 'edf', 0, -1)
for _, seg in ipairs(call('ZRANGE', P .. 'grace', 0, -1)) do segments[#segments + 1] = seg end
for _, seg in ipairs(segments) do
  local h = call('HMGET', P .. 's:' .. seg, 'n', 'cur', 'ok', 'bad', 'leased', 'status', 'tenant', 'open', 'paused', 'held')
  local idle = h[9] or h[10]
  local n, cur, done = num(h[1]), num(h[2]), call('BITCOUNT', P .. 'd:' .. seg)
  local count = leased[seg] or { all = 0, open = 0 }
  local waiting = call('ZCARD', P .. 'r:' .. seg)
  if h[6] == 'queued' then
    -- rows that a commit finished before they were handed out: a power loss undid their lease
    local ahead = cur < n and call('BITCOUNT', P .. 'd:' .. seg, cur, n - 1, 'BIT') or 0
    check(n == done - ahead + count.open + waiting + call('ZCARD', P .. 'x:' .. seg) + n - cur,
      'I1 ' .. seg .. ': a row is nowhere or twice')
    check(waiting + n - cur == 0 or idle or call('ZSCORE', P .. 'q:' .. h[7], seg)
      or call('ZSCORE', P .. 'later', seg), 'I1 ' .. seg .. ': has rows and is in no queue')
    check(not idle or not call('ZSCORE', P .. 'q:' .. h[7], seg), 'I1 ' .. seg .. ': is paused and in a queue')
  end
  check(num(h[3]) + num(h[4]) == done, 'I2 ' .. seg .. ': counters are not its done bits')
  check(num(h[5]) == count.all, 'I1 ' .. seg .. ': leased is not what leases hold')
  open[h[7]] = (open[h[7]] or 0) + n - done
  tokens[h[7]] = (tokens[h[7]] or 0) + num(h[8])
end
for _, tenant in ipairs(call('SMEMBERS', P .. 'tenants')) do
  local t = call('HMGET', P .. 'tn:' .. tenant, 'rows', 'tokens', 'paused')
  check((open[tenant] or 0) == num(t[1]) and (tokens[tenant] or 0) == num(t[2]),
    'I11 tenant ' .. tenant .. ': quota counter leaks')
  local ready, active = call('EXISTS', P .. 'q:' .. tenant) == 1, call('ZSCORE', P .. 'act', tenant)
  check(not ready or active or t[3], 'I1 tenant ' .. tenant .. ': has rows and is not active')
  check(not active or not t[3], 'I1 tenant ' .. tenant .. ': is paused and active')
end
return wrong
