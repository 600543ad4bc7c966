-- The final files of a segment are published: it becomes terminal and its rows are freed.
-- ARGV: segment, fence, seconds for which the record is kept
-- Returns 1, or 0 when a newer fence was given out or it is terminal already.
local seg = ARGV[1]
local key = P .. 's:' .. seg
local h = call('HMGET', key, 'status', 'fence', 'closing')
if h[1] ~= 'finalizing' or h[2] ~= ARGV[2] then return 0 end
call('HSET', key, 'status', h[3])
call('ZREM', P .. 'fin', seg)
free_rows(seg)
call('EXPIRE', key, ARGV[3])
return 1
