-- Hand out rows: what would miss its deadline first, then fair between tenants, earliest deadline
-- first inside a tenant, retries first.
-- ARGV: worker, max rows, max tokens, ttl ms, quantum, tokens the shard does in a second (0:
--       unknown), slack ms (0: no rescue), prefix of the lease's id that was never used before, so
--       that a lease from before a loss of this server is never taken for a new one
-- Returns {} or {lease, seg, job, tenant, model, endpoint, in, ix, deadline, from, to, tries, ...}:
-- nine values and then the range [from, to) and "row:errors:crashes,..." of each run.
local want, budget = math.min(1024, tonumber(ARGV[2])), tonumber(ARGV[3])
local quantum, rate, slack = tonumber(ARGV[5]), num(ARGV[6]), num(ARGV[7])
local MOST_LATE = 16
local now = now_ms()
local got, spent, full = 0, 0, false
local runs = {}

local function fits(cost)
  if got > 0 and spent + cost > budget then
    full = true
    return false
  end
  got, spent = got + 1, spent + cost
  return true
end

-- Due retries. Rows that crashed before are suspects: they go out in a lease of their own, at most
-- as many as the smallest group among them.
local function take_retries(seg, run, most)
  local due = call('ZRANGEBYSCORE', P .. 'r:' .. seg, '-inf', now, 'LIMIT', 0, most)
  local used, limit = 0, nil
  for i = 1, #due do
    local row = due[i]
    local e, c, _, group = tries_of(seg, row)
    if c > 0 and (limit or got == 0) then
      limit = math.min(limit or group, group)
      full = #run.rows >= limit
    else
      full = c > 0 or limit ~= nil
    end
    if full then return used end
    local cost = struct.unpack('<I4', call('GETRANGE', P .. 'k:' .. seg, row * 4, row * 4 + 3))
    if not fits(cost) then return used end
    used = used + cost
    call('ZREM', P .. 'r:' .. seg, row)
    run.rows[#run.rows + 1] = row
    run.tries[#run.tries + 1] = row .. ':' .. e .. ':' .. c
  end
  full = limit ~= nil
  return used
end

-- A row ahead of the cursor that is done (a power loss undid its lease, then its commit came) is
-- passed over at the start of the range and ends it elsewhere.
local function take_fresh(seg, run, most, n)
  local hi = math.min(n, run.cur + most)
  if hi <= run.cur then return 0 end
  local base = math.floor(run.cur / 8)
  local done = call('GETRANGE', P .. 'd:' .. seg, base, math.floor((hi - 1) / 8))
  local some_done = string.find(done, '[^%z]') ~= nil
  local function is_done(row)
    local byte = string.byte(done, math.floor(row / 8) - base + 1) or 0
    return bit.band(byte, bit.rshift(128, row % 8)) ~= 0
  end
  while some_done and run.cur < hi and is_done(run.cur) do run.cur = run.cur + 1 end
  run.from = run.cur
  if hi <= run.from then return 0 end
  local blob = call('GETRANGE', P .. 'k:' .. seg, run.from * 4, hi * 4 - 1)
  local costs, used = u32s(blob), 0
  for i = 1, hi - run.from do
    if some_done and is_done(run.cur) or not fits(costs[i]) then break end
    used = used + costs[i]
    run.rows[#run.rows + 1] = run.cur
    run.cur = run.cur + 1
  end
  return used
end

-- What is left of the segment decides where it waits.
local function put_back(seg, tenant, cur, n)
  if cur < n then return end
  local first = call('ZRANGE', P .. 'r:' .. seg, 0, 0, 'WITHSCORES')
  if #first > 0 and tonumber(first[2]) <= now then return end
  unready(seg, tenant)
  if #first > 0 then call('ZADD', P .. 'later', first[2], seg) end
end

-- Take up to `most` rows of a segment, at its tenant's charge. Returns what the tenant has then.
local function serve(tenant, seg, most)
  local h = call('HMGET', P .. 's:' .. seg, 'cur', 'n', 'weight', 'job', 'model', 'endpoint', 'in', 'ix', 'deadline',
    'leased')
  local n = tonumber(h[2])
  local from = tonumber(h[1])
  local run = { cur = from, from = from, rows = {}, tries = {} }
  local used = take_retries(seg, run, most)
  if not full then used = used + take_fresh(seg, run, most - #run.rows, n) end
  if #run.rows > 0 or run.cur > from then call('HSET', P .. 's:' .. seg, 'cur', run.cur, 'leased', num(h[10]) + #run.rows) end
  local after = call('ZINCRBY', P .. 'act', used / tonumber(h[3]), tenant)
  put_back(seg, tenant, run.cur, n)
  if #run.rows > 0 then
    runs[#runs + 1] = { seg, h[4], tenant, h[5], h[6], h[7], h[8], h[9], run.from, run.cur,
      table.concat(run.tries, ','), rows = run.rows }
  end
  return after
end

-- The first deadline that would pass if its segment waited for its turn. Left out are segments that
-- have nothing to hand out, and those that could not even be half done in time.
local function to_rescue()
  for i = 0, MOST_LATE - 1 do
    local first = call('ZRANGE', P .. 'edf', i, i, 'WITHSCORES')
    if #first == 0 then return end
    local seg, left, work = first[1], first[2] - now, 0
    if rate == 0 and left >= slack then return end
    local h = call('HMGET', P .. 's:' .. seg, 'tenant', 'open')
    if rate > 0 then work = 1000 * num(h[2]) / rate end
    if left >= work + slack then return end
    if work <= 2 * left and call('ZSCORE', P .. 'q:' .. h[1], seg) and call('ZSCORE', P .. 'act', h[1]) then
      return seg, h[1]
    end
  end
end

-- One lease of four is fair alone, so that late work cannot keep the others from all progress.
local meta = call('HMGET', KEYS[1], 'paused', 'lid')
if meta[1] then return {} end
if slack > 0 and num(meta[2]) % 4 < 3 then
  local seg, tenant = to_rescue()
  if seg then serve(tenant, seg, want) end
end
local last
while got < want and not full do
  local head = call('ZRANGE', P .. 'act', 0, 1, 'WITHSCORES')
  if #head == 0 then break end
  local tenant, vt = head[1], tonumber(head[2])
  local seg = call('ZRANGE', P .. 'q:' .. tenant, 0, 0)[1]
  if not seg then
    call('ZREM', P .. 'act', tenant)
    call('HSET', P .. 'tn:' .. tenant, 'vt', vt)
  else
    local alone = #head == 2
    local after = serve(tenant, seg, alone and want - got or math.min(want - got, quantum))
    last = alone and after or vt
  end
end
if last then call('HSET', KEYS[1], 'vt', last) end
if got == 0 then return {} end

-- A command that is sent again because its reply was lost makes a lease of its own.
local lease = ARGV[8] .. '.' .. call('HINCRBY', KEYS[1], 'lid', 1)
call('HSET', P .. 'l:' .. lease, 'worker', ARGV[1], 'left', got, 'n', got)
call('ZADD', P .. 'exp', now + tonumber(ARGV[4]), lease)
local out, segments = { lease }, {}
for i = 1, #runs do
  local run = runs[i]
  segments[i] = run[1]
  call('SADD', P .. 'lr:' .. lease .. ':' .. run[1], unpack(run.rows))
  for j = 1, 11 do out[#out + 1] = run[j] end
end
call('SADD', P .. 'ls:' .. lease, unpack(segments))
return out
