-- Pause or resume a shard, a tenant or a segment. Paused work is not leased; rows in flight finish.
-- ARGV: "shard", "tenant" or "segment", its name ("" for the shard), "1" pause or "0" resume,
--       "1" to pause a shard or tenant also before it has anything
-- Returns {was paused, is paused}, or {} when there is no such segment or tenant.
local kind, name, pause = ARGV[1], ARGV[2], ARGV[3] == '1'
local keys = { shard = KEYS[1], tenant = P .. 'tn:' .. name, segment = P .. 's:' .. name }
local key = keys[kind]
if call('EXISTS', key) == 0 then
  if ARGV[4] ~= '1' then return {} end
  call('HSETNX', KEYS[1], 'v', 1)
end
local was = call('HEXISTS', key, 'paused')
if pause then call('HSET', key, 'paused', 1) else call('HDEL', key, 'paused') end
if kind == 'tenant' then
  if pause then rest(name) else activate(name) end
elseif kind == 'segment' and call('HGET', key, 'status') == 'queued' then
  if pause then
    call('ZREM', P .. 'later', name)
    unready(name, call('HGET', key, 'tenant'))
  else
    place(name, now_ms())
  end
end
if not pause then wake() end
return { was, pause and 1 or 0 }
