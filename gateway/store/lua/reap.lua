-- Take back what expired leases held: rows not done come back as crashed deliveries.
-- ARGV: most leases, max crashes, max tries
-- Returns {leases, rows returned, {dead segment, dead row, ...}}.
local now = now_ms()
local max_crashes, max_tries = tonumber(ARGV[2]), tonumber(ARGV[3])
local leases = call('ZRANGEBYSCORE', P .. 'exp', '-inf', now, 'LIMIT', 0, ARGV[1])
local returned, dead = 0, {}

-- Rows that the worker of each lease holds. A dead worker's leases are among the next to run out, as
-- the others are renewed: so few are looked at.
local function in_flight()
  local rows = {}
  for _, lease in ipairs(call('ZRANGE', P .. 'exp', 0, 255)) do
    local l = call('HMGET', P .. 'l:' .. lease, 'worker', 'left')
    if l[1] then rows[l[1]] = (rows[l[1]] or 0) + num(l[2]) end
  end
  return rows
end

local function take_back(lease, seg, size, all)
  local rows, due = {}, {}
  local open, queued = take_open(lease, seg, call('SMEMBERS', P .. 'lr:' .. lease .. ':' .. seg))
  for _, row in ipairs(queued and open or {}) do
    local e, _, _, _, code = tries_of(seg, row)
    local reason = charge_crash(seg, row, size, all, max_crashes) and 'max_deliveries'
    reason = e >= max_tries and 'max_tries' or reason
    if reason then
      bury(seg, row, now, reason, code)
      dead[#dead + 1] = seg
      dead[#dead + 1] = tonumber(row)
    else
      rows[#rows + 1] = row
      due[#due + 1] = now
    end
  end
  if #rows > 0 then requeue(seg, rows, due, now) end
  close_if_done(seg, now)
  returned = returned + #rows
end

local all = #leases > 0 and in_flight()
for _, lease in ipairs(leases) do
  local l = call('HMGET', P .. 'l:' .. lease, 'n', 'worker')
  for _, seg in ipairs(call('SMEMBERS', P .. 'ls:' .. lease)) do take_back(lease, seg, num(l[1]), all[l[2]] or 0) end
  call('DEL', P .. 'l:' .. lease, P .. 'ls:' .. lease)
  call('ZREM', P .. 'exp', lease)
end
return { #leases, returned, dead }
