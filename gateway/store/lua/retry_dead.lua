-- Rows whose deliveries or tries are used up and whose line is not written yet start over.
-- ARGV: segment ("" for all), most rows of a segment
-- Returns how many wait again.
local now = now_ms()
local returned = 0
for _, seg in ipairs(ARGV[1] ~= '' and { ARGV[1] } or call('SMEMBERS', P .. 'dead')) do
  local rows = call('ZRANGE', P .. 'x:' .. seg, 0, ARGV[2] - 1)
  if #rows > 0 and call('HGET', P .. 's:' .. seg, 'status') == 'queued' then
    local due = {}
    for i = 1, #rows do due[i] = now end
    revive(seg, rows)
    call('HDEL', P .. 'a:' .. seg, unpack(rows))
    requeue(seg, rows, due, now)
    returned = returned + #rows
  end
end
return returned
