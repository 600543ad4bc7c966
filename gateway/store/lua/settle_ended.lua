-- Bring a segment in line with the final state of its batch on disk, whatever became of it here:
-- terminal, nothing left to run, metered as that state says.
-- ARGV: segment, job, tenant, model, n, ok, bad, status, prompt, completion, cached, reasoning,
--       then per hour: hour, requests, failed, prompt, completion, cached, reasoning
-- Returns 1, or 0 when it is terminal already.
local seg, tenant, model = ARGV[1], ARGV[3], ARGV[4]
local key = P .. 's:' .. seg
local h = call('HMGET', key, 'status', 'n', 'ok', 'bad', 'open')
if h[1] == 'completed' or h[1] == 'cancelled' or h[1] == 'expired' then return 0 end
call('HSETNX', KEYS[1], 'v', 1)
call('SADD', P .. 'tenants', tenant)
if h[1] then
  leave_queue(seg, tenant)
  call('ZREM', P .. 'grace', seg)
  call('ZREM', P .. 'fin', seg)
  if h[1] ~= 'finalizing' then
    call('HINCRBY', P .. 'tn:' .. tenant, 'rows', num(h[3]) + num(h[4]) - num(h[2]))
    call('HINCRBY', P .. 'tn:' .. tenant, 'tokens', -num(h[5]))
  end
end

-- Metered is what is missing to the final sums; hours of which nothing is left are taken back.
local hours, had = {}, call('HGETALL', key)
for i = 1, #had, 2 do
  if string.find(had[i], '^%d+$') then
    local sums = hour_sums(had[i + 1])
    for j = 1, 6 do sums[j] = -sums[j] end
    hours[had[i]] = sums
    call('HDEL', key, had[i])
  end
end
for i = 13, #ARGV, 7 do
  local sums = hours[ARGV[i]] or hour_sums()
  for j = 1, 6 do sums[j] = sums[j] + tonumber(ARGV[i + j]) end
  hours[ARGV[i]] = sums
end
for hour, sums in pairs(hours) do meter(tenant, model, hour, sums) end

call('HSET', key, 'job', ARGV[2], 'tenant', tenant, 'model', model, 'n', ARGV[5], 'ok', ARGV[6], 'bad', ARGV[7],
  'status', ARGV[8], 'closing', ARGV[8], 'prompt', ARGV[9], 'completion', ARGV[10], 'cached', ARGV[11],
  'reasoning', ARGV[12])
free_rows(seg)
call('EXPIRE', key, 2592000)
return 1
