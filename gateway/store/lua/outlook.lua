-- What a forecast is made of: rows delivered by hour, and the work that is left.
-- ARGV: most segments, then hours
-- Returns the deliveries of each hour, then for each queued segment, earliest deadline first: segment,
-- tenant, weight, rows and estimated tokens not done, deadline ms, priority, "1" when it is paused.
-- What a tenant has beyond these comes last, as one segment without a name.
local LAST = '9000000000000000'
local segments = call('ZRANGE', P .. 'edf', 0, ARGV[1] - 1)
if #segments == 0 then return {} end
local model = call('HGET', P .. 's:' .. segments[1], 'model')
local shard_paused = call('HGET', KEYS[1], 'paused')
local out, rest, order = {}, {}, {}
for i = 2, #ARGV do out[i - 1] = 0 end
for _, tenant in ipairs(call('SMEMBERS', P .. 'tenants')) do
  local t = call('HMGET', P .. 'tn:' .. tenant, 'weight', 'rows', 'tokens', 'paused')
  rest[tenant] = { weight = t[1], rows = num(t[2]), tokens = num(t[3]), paused = t[4] }
  order[#order + 1] = tenant
  for i = 2, #ARGV do
    local rows = call('HGET', P .. 'm:' .. tenant .. ':' .. ARGV[i], model .. '|requests')
    out[i - 1] = out[i - 1] + num(rows)
  end
end

local function add(...)
  for _, value in ipairs({ ... }) do out[#out + 1] = value end
end

for _, seg in ipairs(segments) do
  local h = call('HMGET', P .. 's:' .. seg, 'tenant', 'weight', 'n', 'ok', 'bad', 'open', 'deadline', 'prio', 'paused')
  local own, left = rest[h[1]], num(h[3]) - num(h[4]) - num(h[5])
  own.rows, own.tokens = own.rows - left, own.tokens - num(h[6])
  add(seg, h[1], h[2], left, h[6], h[7], h[8], (shard_paused or own.paused or h[9]) and 1 or 0)
end
if #segments == tonumber(ARGV[1]) then
  for _, tenant in ipairs(order) do
    local own = rest[tenant]
    if own.rows > 0 and own.tokens > 0 then
      add('', tenant, own.weight, own.rows, own.tokens, LAST, 0, (shard_paused or own.paused) and 1 or 0)
    end
  end
end
return out
