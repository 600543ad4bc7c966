-- Counters of the shard.
-- Returns name, value, ...
local queued, leased = 0, 0
local segments = call('ZRANGE', P .. 'edf', 0, -1)
for _, seg in ipairs(segments) do
  local h = call('HMGET', P .. 's:' .. seg, 'n', 'ok', 'bad', 'leased')
  queued = queued + num(h[1]) - num(h[2]) - num(h[3]) - num(h[4])
  leased = leased + num(h[4])
end
return { 'segments', #segments, 'rows_waiting', queued, 'rows_leased', leased,
  'leases', call('ZCARD', P .. 'exp'), 'finishing', call('ZCARD', P .. 'fin'),
  'dead_segments', call('SCARD', P .. 'dead'), 'later', call('ZCARD', P .. 'later'),
  'paused', num(call('HGET', KEYS[1], 'paused')), 'clock_jump_ms', num(call('HGET', KEYS[1], 'jump')) }
