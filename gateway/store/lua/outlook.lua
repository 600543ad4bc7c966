-- What a forecast is made of: rows delivered by hour, and the work that is left.
-- ARGV: most segments, then hours
-- Returns the deliveries of each hour, then for each queued segment, earliest deadline first: segment,
-- tenant, weight, rows and estimated tokens not done, deadline ms, priority, "1" when it is paused.
local segments = call('ZRANGE', P .. 'edf', 0, ARGV[1] - 1)
if #segments == 0 then return {} end
local model = call('HGET', P .. 's:' .. segments[1], 'model')
local shard_paused = call('HGET', KEYS[1], 'paused')
local out, paused = {}, {}
for i = 2, #ARGV do out[i - 1] = 0 end
for _, tenant in ipairs(call('SMEMBERS', P .. 'tenants')) do
  paused[tenant] = call('HGET', P .. 'tn:' .. tenant, 'paused')
  for i = 2, #ARGV do
    local rows = call('HGET', P .. 'm:' .. tenant .. ':' .. ARGV[i], model .. '|requests')
    out[i - 1] = out[i - 1] + num(rows)
  end
end
for _, seg in ipairs(segments) do
  local h = call('HMGET', P .. 's:' .. seg, 'tenant', 'weight', 'n', 'ok', 'bad', 'open', 'deadline', 'prio', 'paused')
  local stopped = shard_paused or paused[h[1]] or h[9]
  local left = num(h[3]) - num(h[4]) - num(h[5])
  for _, value in ipairs({ seg, h[1], h[2], left, h[6], h[7], h[8], stopped and 1 or 0 }) do
    out[#out + 1] = value
  end
end
return out
