-- Give back rows untouched; no try is charged. Rows come back due at once.
-- ARGV: lease, then segment, rows (u32 each), ...; without segments everything that is left.
-- Returns how many rows were returned.
local lease = ARGV[1]
local now = now_ms()
local returned = 0

local function give_back(seg, rows)
  local open, queued = take_open(lease, seg, rows)
  if #open > 0 and queued then
    local due = {}
    for i = 1, #open do due[i] = now end
    requeue(seg, open, due, now)
    returned = returned + #open
  end
  close_if_done(seg, now)
end

if #ARGV == 1 then
  for _, seg in ipairs(call('SMEMBERS', P .. 'ls:' .. lease)) do
    give_back(seg, call('SMEMBERS', P .. 'lr:' .. lease .. ':' .. seg))
  end
end
for i = 2, #ARGV, 2 do
  local rows, pos = {}, 1
  for j = 1, #ARGV[i + 1] / 4 do rows[j], pos = struct.unpack('<I4', ARGV[i + 1], pos) end
  give_back(ARGV[i], rows)
end
return returned
