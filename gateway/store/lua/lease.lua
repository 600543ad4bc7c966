-- Hand out rows: what would miss its deadline first, then fair between tenants, earliest deadline
-- first inside a tenant, retries first. Nothing of a segment whose deadline passed, unless the clock
-- leapt and nothing expires: the caller lets it expire and asks again.
-- ARGV: worker, max rows, max tokens, ttl ms, quantum, tokens the shard does in a second (0:
--       unknown), slack ms (0: no rescue), prefix of the lease's id that was never used before, so
--       that a lease from before a loss of this server is never taken for a new one
-- Returns {}, {"late"} or {lease, now ms, seg, job, tenant, model, endpoint, in, ix, deadline, from, to,
-- tries, ...}: of each run eight values, the range [from, to) and "row:errors:crashes,...".
local want, budget = math.min(1024, tonumber(ARGV[2])), tonumber(ARGV[3])
local quantum, rate, slack = tonumber(ARGV[5]), num(ARGV[6]), num(ARGV[7])
local MOST_LATE, SMALL = 16, 64
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
-- passed over at the start of the range and ends it elsewhere. `plain`: there is none; `costs`: of
-- all rows, if they were read.
local function take_fresh(seg, run, most, n, plain, costs)
  local hi = math.min(n, run.cur + most)
  if hi <= run.cur then return 0 end
  local base = math.floor(run.cur / 8)
  local done = plain and '' or call('GETRANGE', P .. 'd:' .. seg, base, math.floor((hi - 1) / 8))
  local some_done = string.find(done, '[^%z]') ~= nil
  local function is_done(row)
    local byte = string.byte(done, math.floor(row / 8) - base + 1) or 0
    return bit.band(byte, bit.rshift(128, row % 8)) ~= 0
  end
  while some_done and run.cur < hi and is_done(run.cur) do run.cur = run.cur + 1 end
  run.from = run.cur
  if hi <= run.from then return 0 end
  local blob = costs and string.sub(costs, run.from * 4 + 1, hi * 4)
    or call('GETRANGE', P .. 'k:' .. seg, run.from * 4, hi * 4 - 1)
  local each, used = u32s(blob), 0
  for i = 1, hi - run.from do
    if some_done and is_done(run.cur) or not fits(each[i]) then break end
    used = used + each[i]
    run.rows[#run.rows + 1] = run.cur
    run.cur = run.cur + 1
  end
  return used
end

-- Whether the segment has nothing to hand out now. Its next retry decides where it waits then.
local function is_over(seg, cur, n, plain)
  if cur < n then return false end
  local first = plain and {} or call('ZRANGE', P .. 'r:' .. seg, 0, 0, 'WITHSCORES')
  if #first > 0 and tonumber(first[2]) <= now then return false end
  if #first > 0 then call('ZADD', P .. 'later', first[2], seg) end
  return true
end

-- Take up to `most` rows of a segment. Returns how many, their cost, and whether it is over.
local function take(tenant, seg, h, most, plain, costs)
  local n, from = tonumber(h[2]), tonumber(h[1])
  local run = { cur = from, from = from, rows = {}, tries = {} }
  local used = plain and 0 or take_retries(seg, run, most)
  if not full then used = used + take_fresh(seg, run, most - #run.rows, n, plain, costs) end
  if #run.rows > 0 or run.cur > from then call('HSET', P .. 's:' .. seg, 'cur', run.cur, 'leased', num(h[10]) + #run.rows) end
  if #run.rows > 0 then
    runs[#runs + 1] = { seg, h[4], tenant, h[5], h[6], h[7], h[8], h[9], run.from, run.cur,
      table.concat(run.tries, ','), rows = run.rows }
  end
  return #run.rows, used, is_over(seg, run.cur, n, plain)
end

-- Records of the first of these segments that have `most` fresh rows together; whether none of them
-- has a retry or a done row; and the costs of those that are small.
local function read(segs, most)
  local found, marks, small, rows = {}, {}, {}, 0
  for i = 1, #segs do
    if rows >= most then break end
    local h = call('HMGET', P .. 's:' .. segs[i], 'cur', 'n', 'weight', 'job', 'model', 'endpoint', 'in', 'ix', 'deadline',
      'leased')
    found[i], rows = h, rows + h[2] - h[1]
    marks[2 * i - 1], marks[2 * i] = P .. 'r:' .. segs[i], P .. 'd:' .. segs[i]
    if tonumber(h[2]) <= SMALL then small[#small + 1] = i end
  end
  local costs, keys = {}, {}
  for i = 1, #small do keys[i] = P .. 'k:' .. segs[small[i]] end
  local blobs = #small > 0 and call('MGET', unpack(keys))
  for i = 1, #small do costs[small[i]] = blobs[i] end
  return found, call('EXISTS', unpack(marks)) == 0, costs
end

-- Take up to `most` rows of these segments of a tenant, at its charge. Returns what it has then.
local function serve(tenant, segs, most)
  local found, plain, costs = read(segs, most)
  local taken, charged, over = 0, 0, {}
  for i = 1, #found do
    if taken >= most or full then break end
    local rows, used, is_out = take(tenant, segs[i], found[i], most - taken, plain, costs[i])
    taken, charged = taken + rows, charged + used / tonumber(found[i][3])
    if is_out then over[#over + 1] = segs[i] end
  end
  local after = call('ZINCRBY', P .. 'act', charged, tenant)
  local q = P .. 'q:' .. tenant
  if #over > 0 and call('ZREM', q, unpack(over)) > 0 and call('EXISTS', q) == 0 then rest(tenant) end
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
local meta = call('HMGET', KEYS[1], 'paused', 'lid', 'jump')
if meta[1] then return {} end
if num(meta[3]) == 0 and #call('ZRANGEBYSCORE', P .. 'edf', '-inf', now, 'LIMIT', 0, 1) > 0 then return { 'late' } end
if slack > 0 and num(meta[2]) % 4 < 3 then
  local seg, tenant = to_rescue()
  if seg then serve(tenant, { seg }, want) end
end
local last
while got < want and not full do
  local head = call('ZRANGE', P .. 'act', 0, 1, 'WITHSCORES')
  if #head == 0 then break end
  local tenant, vt = head[1], tonumber(head[2])
  local alone = #head == 2
  local most = alone and want - got or math.min(want - got, quantum)
  local segs = call('ZRANGE', P .. 'q:' .. tenant, 0, most - 1)
  if #segs == 0 then
    call('ZREM', P .. 'act', tenant)
    call('HSET', P .. 'tn:' .. tenant, 'vt', vt)
  else
    local after = serve(tenant, segs, most)
    last = alone and after or vt
  end
end
if last then call('HSET', KEYS[1], 'vt', last) end
if got == 0 then return {} end

-- A command that is sent again because its reply was lost makes a lease of its own.
local lease = ARGV[8] .. '.' .. call('HINCRBY', KEYS[1], 'lid', 1)
call('HSET', P .. 'l:' .. lease, 'worker', ARGV[1], 'left', got, 'n', got)
call('ZADD', P .. 'exp', now + tonumber(ARGV[4]), lease)
local out, segments = { lease, now }, {}
for i = 1, #runs do
  local run = runs[i]
  segments[i] = run[1]
  call('SADD', P .. 'lr:' .. lease .. ':' .. run[1], unpack(run.rows))
  for j = 1, 11 do out[#out + 1] = run[j] end
end
call('SADD', P .. 'ls:' .. lease, unpack(segments))
return out
