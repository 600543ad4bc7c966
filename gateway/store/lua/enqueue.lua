-- Add segments; adding one again changes nothing. What is refused of one is no matter of the others.
-- ARGV: "1" when the sender has listed this shard before, then per segment: segment, job, tenant,
--       model, endpoint, weight, window ms, priority, input ref, index ref, sum of tokens, tokens blob,
--       ms before which no row is leased, most rows and most tokens the tenant may have queued
--       (0: any number), "1" when it is held until it is started
-- Returns {-1} when the shard is new here and must be listed first. Else for each segment {code,
-- queued, ...}: 1 new, 0 exists, and when it was not added: -2 rows or -3 tokens, the tenant would
-- have too many with so many queued; -4, the tenant's keys are broken.
local EACH = 16
local keys = { KEYS[1] }
for at = 2, #ARGV, EACH do keys[#keys + 1] = P .. 's:' .. ARGV[at] end
local there = call('EXISTS', unpack(keys))
if there == 0 then
  if ARGV[1] == '1' then return { -1 } end
  call('HSET', KEYS[1], 'v', 1)
end
local now = now_ms()
local tenants, answers, new, costs, edf, later, ready = {}, {}, {}, {}, {}, {}, 0

-- Whether the segment may be added. Nothing is written yet.
local function check(at)
  local seg, tenant = ARGV[at + 1], ARGV[at + 3]
  if new[seg] or there > 1 and call('EXISTS', P .. 's:' .. seg) == 1 then return 0, 0 end
  local a, most_rows, most_tokens = tenants[tenant], tonumber(ARGV[at + 14]), tonumber(ARGV[at + 15])
  if not a then
    local had = call('HMGET', P .. 'tn:' .. tenant, 'rows', 'tokens')
    a = { known = had[1], rows = num(had[1]), tokens = num(had[2]), places = {} }
    tenants[tenant] = a
  end
  local rows, tokens = a.rows + #ARGV[at + 12] / 4, a.tokens + ARGV[at + 11]
  if most_rows > 0 and rows > most_rows then return -2, a.rows end
  if most_tokens > 0 and tokens > most_tokens then return -3, a.tokens end
  new[seg], a.rows, a.tokens, a.weight = true, rows, tokens, ARGV[at + 6]
  a.places[#a.places + 1] = at
  return 1, 0
end

-- Add the new segments of a tenant, first to what may be broken.
local function add(tenant, a)
  local waiting = {}
  for _, at in ipairs(a.places) do
    if ARGV[at + 16] ~= '1' and tonumber(ARGV[at + 13]) <= 0 then
      waiting[#waiting + 1] = effective(now + ARGV[at + 7], tonumber(ARGV[at + 8]))
      waiting[#waiting + 1] = ARGV[at + 1]
    end
  end
  if #waiting > 0 then call('ZADD', P .. 'q:' .. tenant, unpack(waiting)) end
  if not a.known then call('SADD', P .. 'tenants', tenant) end
  call('HSET', P .. 'tn:' .. tenant, 'weight', a.weight, 'rows', a.rows, 'tokens', a.tokens)
  if #waiting > 0 then activate(tenant) end
  ready = ready + #waiting / 2
  for _, at in ipairs(a.places) do
    local seg, deadline, delay = ARGV[at + 1], now + ARGV[at + 7], tonumber(ARGV[at + 13])
    write_segment(at, 0, deadline)
    costs[#costs + 1], costs[#costs + 2] = P .. 'k:' .. seg, ARGV[at + 12]
    edf[#edf + 1], edf[#edf + 2] = deadline, seg
    if delay > 0 then call('HSET', P .. 's:' .. seg, 'nb', now + delay) end
    if ARGV[at + 16] == '1' then
      call('HSET', P .. 's:' .. seg, 'held', 1)
    elseif delay > 0 then
      later[#later + 1], later[#later + 2] = now + delay, seg
    end
  end
end

for at = 1, #ARGV - 1, EACH do
  local fine, code, queued = pcall(check, at)
  if not fine then code, queued = -4, 0 end
  answers[#answers + 1], answers[#answers + 2] = code, queued
end
for tenant, a in pairs(tenants) do
  if #a.places > 0 and not pcall(add, tenant, a) then
    for _, at in ipairs(a.places) do answers[2 * (at - 1) / EACH + 1] = -4 end
  end
end
if #edf > 0 then
  call('MSET', unpack(costs))
  call('ZADD', P .. 'edf', unpack(edf))
end
if #later > 0 then call('ZADD', P .. 'later', unpack(later)) end
if ready > 0 then wake(ready) end
return answers
