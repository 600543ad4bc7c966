-- Add a segment that was lost with what its part files hold: those rows are done and metered.
-- ARGV: 12 values of write_segment, cursor, rows below it that are not done (u32 each), done bits,
--       good bits, refs (16 bytes each), ok, bad, prompt, completion, cached, reasoning,
--       sum of the token estimates of done rows, "1" when it is held until it is started,
--       then per hour: hour, requests, failed, prompt, completion, cached, reasoning
-- Fences begin at the time of now, so that no claim from before the loss is worth anything.
-- Returns 1 new, 0 exists.
local seg, tenant, model = ARGV[1], ARGV[3], ARGV[4]
local key = P .. 's:' .. seg
if call('EXISTS', key) == 1 then return 0 end
call('HSETNX', KEYS[1], 'v', 1)
local now = now_ms()
local cur = tonumber(ARGV[13])
local deadline, had = now + tonumber(ARGV[7]), call('HMGET', P .. 'tn:' .. tenant, 'rows', 'tokens')
write_segment(0, cur, deadline)
call('SET', P .. 'k:' .. seg, ARGV[12])
call('SADD', P .. 'tenants', tenant)
call('HSET', P .. 'tn:' .. tenant, 'weight', ARGV[6], 'rows', num(had[1]) + #ARGV[12] / 4, 'tokens', num(had[2]) + ARGV[11])
call('ZADD', P .. 'edf', deadline, seg)
local ok, bad = tonumber(ARGV[18]), tonumber(ARGV[19])
call('HSET', key, 'ok', ok, 'bad', bad, 'prompt', ARGV[20], 'completion', ARGV[21], 'cached', ARGV[22],
  'reasoning', ARGV[23], 'fence', now)
if ARGV[25] == '1' then call('HSET', key, 'held', 1) end
if cur > 0 then
  call('SET', P .. 'd:' .. seg, ARGV[15])
  call('SET', P .. 'g:' .. seg, ARGV[16])
  call('SET', P .. 'f:' .. seg, ARGV[17])
  call('HINCRBY', P .. 'tn:' .. tenant, 'rows', -ok - bad)
  call('HINCRBY', P .. 'tn:' .. tenant, 'tokens', -ARGV[24])
  call('HINCRBY', key, 'open', -ARGV[24])
end
for i = 26, #ARGV, 7 do
  local sums = {}
  for j = 1, 6 do sums[j] = tonumber(ARGV[i + j]) end
  call('HSET', key, ARGV[i], table.concat(sums, ' '))
  meter(tenant, model, ARGV[i], sums)
end
local pos = 1
while pos <= #ARGV[14] do
  local row
  row, pos = struct.unpack('<I4', ARGV[14], pos)
  call('ZADD', P .. 'r:' .. seg, now, row)
end
if not close_if_done(seg, now) then place(seg, now) end
return 1
