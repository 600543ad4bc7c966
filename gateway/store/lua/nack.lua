-- Give back rows that failed. Only rows that the lease still holds count, so a repeat is harmless.
-- ARGV: lease, segment, max tries, base ms, cap ms, max crashes, then per row: row, kind, wait ms,
--       error code, rows that crashed together
-- kind 0 error, 1 crash, 2 throttle; wait 0 leaves the delay to the curve.
-- Returns {{requeued row, ...}, {exhausted row, ...}}; exhausted rows stay in the lease.
local lease, seg = ARGV[1], ARGV[2]
local max_tries, base, cap, max_crashes = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local now = now_ms()
local t = call('TIME')
math.randomseed(t[1] + t[2])
local lr = P .. 'lr:' .. lease .. ':' .. seg
local size = num(call('HGET', P .. 'l:' .. lease, 'n'))
local done = P .. 'd:' .. seg
local rows, due, finished, exhausted = {}, {}, {}, {}

local function delay(tries, wait)
  if wait > 0 then return wait end
  local bound = math.min(cap, base * 2 ^ (tries - 1))
  return math.floor(math.random() * bound)
end

local function give_up(row, reason, code)
  exhausted[#exhausted + 1] = row
  note_dead(seg, row, now, reason, code)
end

for i = 7, #ARGV, 5 do
  local row, kind, wait, code = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), ARGV[i + 3]
  if call('SISMEMBER', lr, row) == 1 then
    if call('GETBIT', done, row) == 1 then
      finished[#finished + 1] = row
    elseif kind == 1 then
      if charge_crash(seg, row, size, tonumber(ARGV[i + 4]), max_crashes) then
        give_up(row, 'max_deliveries', code)
      else
        rows[#rows + 1] = row
        due[#due + 1] = now
      end
    else
      local e, c, o, g = tries_of(seg, row)
      e = e + 1
      set_tries(seg, row, e, c, o, g, code)
      if e >= max_tries then
        give_up(row, 'max_tries', code)
      else
        rows[#rows + 1] = row
        due[#due + 1] = now + delay(e, wait)
      end
    end
  end
end
take_from_lease(lease, seg, finished)
local _, queued = take_open(lease, seg, rows)
if #rows > 0 and queued then
  requeue(seg, rows, due, now)
end
close_if_done(seg, now)
return { rows, exhausted }
