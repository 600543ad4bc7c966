-- Change the order of segments inside their tenants, or the weight of tenants among each other.
-- ARGV: "shard", "tenant" or "segment", its name ("" for the shard), "prio" or "weight", value
-- Returns how many segments changed.
local kind, name, field, value = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local segments = kind == 'segment' and { name } or call('ZRANGE', P .. 'edf', 0, -1)
local changed = 0
for _, seg in ipairs(segments) do
  local h = call('HMGET', P .. 's:' .. seg, 'tenant', 'deadline', 'status')
  if h[3] == 'queued' and (kind ~= 'tenant' or h[1] == name) then
    call('HSET', P .. 's:' .. seg, field, value)
    changed = changed + 1
    if field == 'prio' then
      call('ZADD', P .. 'q:' .. h[1], 'XX', effective(h[2], value), seg)
    else
      call('HSET', P .. 'tn:' .. h[1], 'weight', value)
    end
  end
end
return changed
