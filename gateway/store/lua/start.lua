-- Let the rows of a held segment be leased; starting it again changes nothing.
-- ARGV: segment
-- Returns 1, or 0 when there is no such segment.
local seg = ARGV[1]
local status = call('HGET', P .. 's:' .. seg, 'status')
if not status then return 0 end
if call('HDEL', P .. 's:' .. seg, 'held') == 1 and status == 'queued' then place(seg, now_ms()) end
return 1
