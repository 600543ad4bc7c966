-- Put in front of every queue script: what they share.
--
-- KEYS[1] is gw:{shard}:meta; all other keys of the shard have its prefix P and so its slot.
--   meta           hash    vt: virtual time of the tenant served last, for when nobody is active;
--                          lid: number of leases; paused; jump: ms the clock leapt, until
--                          an operator confirms it; seen: ms of about now; v: schema version
--   tenants        set     every tenant that ever had a segment here
--   act            zset    tenant -> virtual time; tenants with rows that may be leased now. A tenant
--                          is charged, per weight, the estimates of its leased rows and the tokens
--                          of its done rows, nothing else
--   tn:<tenant>    hash    weight, vt when it was last active, rows and estimated tokens not
--                          done (quota), paused
--   q:<tenant>     zset    segment -> effective deadline ms; segments with rows that may be leased
--   edf            zset    segment -> deadline ms; segments that are queued
--   later          zset    segment -> due ms; segments whose only work is not due yet
--   s:<segment>    hash    the record: job, tenant, model, endpoint, weight, n, cur, ok, bad, leased, status, closing,
--                          caught: rows that ran at the deadline, deadline, prio, nb: ms before which nothing is
--                          leased, paused, held: not started yet, in, ix, grace, fence, open: sum of estimates of
--                          rows not done, prompt, completion, cached, reasoning; "<hour>": what the meter got for
--                          it in that hour
--   k:<segment>    string  4-byte little-endian token estimate per row
--   d:<segment>    bitmap  rows that are done
--   g:<segment>    bitmap  rows that are done and good
--   f:<segment>    string  16 bytes per row: part u32, offset u64, length u32
--   r:<segment>    zset    row -> due ms; rows that wait for another try
--   a:<segment>    hash    row -> "error tries:crash tries:crashes alone:group:last code"
--   x:<segment>    zset    row -> ms; rows that were given up and nobody holds, waiting for their line
--   y:<segment>    hash    row -> "reason last code" of such rows
--   dead           set     segments that have such rows
--   dl             list    "ms segment row reason last code" of the 1,000 rows given up last
--   l:<lease>      hash    worker, left: rows not settled, n: rows at the start
--   ls:<lease>     set     segments of the lease
--   lr:<lease>:<segment> set  rows of the segment that the lease holds and has not settled
--   exp            zset    lease -> expiry ms
--   grace          zset    segment -> ms at which a cancelled or expired segment is closed anyway
--   fin            zset    segment -> ms from which its final files may be claimed
--   m:<tenant>:<hour> hash "<model>|<figure>" -> sum over delivered rows
--   fc             hash    segment -> "eta ms:rows in a second:1 stalled, 2 paused"; forecasts, while they are fresh
--   wake           list    at most 64 tokens that wake waiting dispatchers
local P = string.sub(KEYS[1], 1, -5)
local call = redis.call

local function now_ms()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function wake(times)
  local waiting = call('LLEN', P .. 'wake')
  for _ = waiting + 1, math.min(64, waiting + (times or 1)) do call('LPUSH', P .. 'wake', 1) end
end

local function num(value)
  return tonumber(value) or 0
end

-- The tenant competes from here on, if it has rows that may be leased and is not paused: where it
-- was last, or beside the one that is behind most.
local function activate(tenant)
  if call('ZSCORE', P .. 'act', tenant) or call('EXISTS', P .. 'q:' .. tenant) == 0 then return end
  local h = call('HMGET', P .. 'tn:' .. tenant, 'vt', 'paused')
  if h[2] then return end
  local first = call('ZRANGE', P .. 'act', 0, 0, 'WITHSCORES')[2] or call('HGET', KEYS[1], 'vt')
  call('ZADD', P .. 'act', math.max(num(first), num(h[1])), tenant)
end

-- The tenant competes no more; what it was charged is kept.
local function rest(tenant)
  local vt = call('ZSCORE', P .. 'act', tenant)
  if vt then
    call('ZREM', P .. 'act', tenant)
    call('HSET', P .. 'tn:' .. tenant, 'vt', vt)
  end
end

-- A priority is worth a minute of the deadline.
local function effective(deadline, prio)
  return deadline - prio * 60000
end

-- The segment has rows that may be leased now.
local function make_ready(seg, tenant, deadline, prio)
  call('ZREM', P .. 'later', seg)
  call('ZADD', P .. 'q:' .. tenant, effective(deadline, prio), seg)
  activate(tenant)
end

-- The segment has no rows that may be leased now; without another one its tenant rests.
local function unready(seg, tenant)
  if call('ZREM', P .. 'q:' .. tenant, seg) == 1 and call('EXISTS', P .. 'q:' .. tenant) == 0 then
    rest(tenant)
  end
end

-- Let a queued segment wait where its rows belong: to be leased now, or when the first is due.
-- Nowhere while it is paused or held, or all its rows are out.
local function place(seg, now)
  local h = call('HMGET', P .. 's:' .. seg, 'tenant', 'deadline', 'prio', 'cur', 'n', 'nb', 'paused', 'held')
  if h[7] or h[8] then return end
  local due = num(h[4]) < num(h[5]) and num(h[6]) or nil
  local first = call('ZRANGE', P .. 'r:' .. seg, 0, 0, 'WITHSCORES')[2]
  if first then due = math.min(due or tonumber(first), tonumber(first)) end
  if not due then return end
  if due <= now then
    make_ready(seg, h[1], num(h[2]), num(h[3]))
    wake()
  else
    call('ZADD', P .. 'later', due, seg)
  end
end

-- The numbers of a string of 4 bytes each.
local function u32s(blob)
  local numbers = { struct.unpack('<' .. string.rep('I4', #blob / 4), blob) }
  numbers[#numbers] = nil -- where the string ends
  return numbers
end

-- Sum of the token estimates of rows; one read, as rows that go together are neighbours.
local function estimate(seg, rows)
  if #rows == 0 then return 0 end
  local lo, hi, sum = math.huge, 0, 0
  for i = 1, #rows do lo, hi = math.min(lo, rows[i]), math.max(hi, rows[i]) end
  local blob = call('GETRANGE', P .. 'k:' .. seg, lo * 4, hi * 4 + 3)
  if #blob < (hi - lo + 1) * 4 then return 0 end
  if hi - lo + 1 == #rows then
    local costs = u32s(blob)
    for i = 1, #rows do sum = sum + costs[i] end
  else
    for i = 1, #rows do sum = sum + struct.unpack('<I4', blob, (rows[i] - lo) * 4 + 1) end
  end
  return sum
end

-- Charge a tenant tokens, or refund what is below 0.
local function charge(tenant, weight, tokens)
  if tokens == 0 then return end
  local by = tokens / tonumber(weight)
  if not call('ZADD', P .. 'act', 'XX', 'INCR', by, tenant) then
    call('HINCRBYFLOAT', P .. 'tn:' .. tenant, 'vt', by)
  end
end

local function leave_queue(seg, tenant)
  call('ZREM', P .. 'later', seg)
  call('ZREM', P .. 'edf', seg)
  unready(seg, tenant)
end

-- A tenant's rows are done: it is charged by `vt`, and its quota has them no more.
local function settle_tenant(tenant, vt, rows, tokens)
  local charged = vt == 0 or call('ZADD', P .. 'act', 'XX', 'INCR', vt, tenant)
  local t = call('HMGET', P .. 'tn:' .. tenant, 'rows', 'tokens', 'vt')
  local left = { 'rows', num(t[1]) - rows, 'tokens', num(t[2]) - tokens }
  if not charged then left[5], left[6] = 'vt', num(t[3]) + vt end
  call('HSET', P .. 'tn:' .. tenant, unpack(left))
end

-- Write the record of the segment that ARGV[at + 1 .. at + 12] describe; its k: and the rows below
-- `cur` are the caller's business. The fields that every commit reads come first.
local function write_segment(at, cur, deadline)
  call('HSET', P .. 's:' .. ARGV[at + 1], 'status', 'queued', 'tenant', ARGV[at + 3], 'model', ARGV[at + 4],
    'n', #ARGV[at + 12] / 4, 'weight', ARGV[at + 6], 'cur', cur, 'open', ARGV[at + 11], 'job', ARGV[at + 2], 'endpoint', ARGV[at + 5],
    'deadline', deadline, 'prio', ARGV[at + 8], 'in', ARGV[at + 9], 'ix', ARGV[at + 10])
end

local FIGURES = { 'requests', 'failed', 'prompt', 'completion', 'cached', 'reasoning' }

-- The sums of FIGURES that a segment notes of an hour.
local function hour_sums(text)
  local sums = {}
  for number in string.gmatch(text or '0 0 0 0 0 0', '%d+') do sums[#sums + 1] = tonumber(number) end
  return sums
end

-- Meter by how much more a segment delivered in an hour.
local function meter(tenant, model, hour, sums)
  for i = 1, #FIGURES do
    if sums[i] ~= 0 then call('HINCRBY', P .. 'm:' .. tenant .. ':' .. hour, model .. '|' .. FIGURES[i], sums[i]) end
  end
end

-- Enter FINALIZING when nothing can be added any more. Returns true when it was entered.
local function close_if_done(seg, now)
  local h = call('HMGET', P .. 's:' .. seg, 'status', 'n', 'ok', 'bad', 'leased', 'grace', 'tenant', 'closing', 'open')
  local all_done = num(h[3]) + num(h[4]) == num(h[2])
  if h[1] ~= 'queued' and h[1] ~= 'cancelling' then return false end
  local over = h[1] == 'cancelling' and (num(h[5]) <= 0 or num(h[6]) <= now)
  if not all_done and not over then return false end
  local closing = h[1] == 'queued' and 'completed' or h[8]
  leave_queue(seg, h[7])
  if h[1] == 'cancelling' then call('ZREM', P .. 'grace', seg) end
  call('HSET', P .. 's:' .. seg, 'status', 'finalizing', 'closing', closing)
  call('ZADD', P .. 'fin', now, seg)
  if not all_done then
    call('HINCRBY', P .. 'tn:' .. h[7], 'rows', num(h[3]) + num(h[4]) - num(h[2]))
    call('HINCRBY', P .. 'tn:' .. h[7], 'tokens', -num(h[9]))
  end
  return true
end

-- Rows of a segment wait for another try from `due` on.
local function requeue(seg, rows, due, now)
  local args = {}
  for i = 1, #rows do args[2 * i - 1], args[2 * i] = due[i], rows[i] end
  call('ZADD', P .. 'r:' .. seg, unpack(args))
  place(seg, now)
end

-- So many rows left a lease, which ends with its last one.
local function lower(lease, gone)
  if gone > 0 and call('HINCRBY', P .. 'l:' .. lease, 'left', -gone) <= 0 then
    call('DEL', P .. 'l:' .. lease, P .. 'ls:' .. lease)
    call('ZREM', P .. 'exp', lease)
  end
end

-- Take rows out of a lease. Returns those that it held.
local function take_from_lease(lease, seg, rows)
  if #rows == 0 then return {} end
  local key = P .. 'lr:' .. lease .. ':' .. seg
  local found, held = call('SMISMEMBER', key, unpack(rows)), {}
  for i = 1, #rows do
    if found[i] == 1 then held[#held + 1] = rows[i] end
  end
  if #held > 0 then
    call('SREM', key, unpack(held))
    call('HINCRBY', P .. 's:' .. seg, 'leased', -#held)
    lower(lease, #held)
  end
  return held
end

-- Take rows out of a lease that are not done: refunded, as what they were charged is charged again
-- when they are leased again. Returns them, and whether the segment still hands out rows.
local function take_open(lease, seg, rows)
  local open = {}
  for _, row in ipairs(take_from_lease(lease, seg, rows)) do
    if call('GETBIT', P .. 'd:' .. seg, row) == 0 then open[#open + 1] = row end
  end
  local h = call('HMGET', P .. 's:' .. seg, 'tenant', 'weight', 'status')
  if h[1] then charge(h[1], h[2], -estimate(seg, open)) end
  return open, h[3] == 'queued'
end

-- error tries, crash tries, crashes alone, size of the next group, code of the last error
local function tries_of(seg, row)
  local a = call('HGET', P .. 'a:' .. seg, row)
  if not a then return 0, 0, 0, 0, '' end
  local e, c, o, g, code = string.match(a, '(%d+):(%d+):(%d+):(%d+):?(.*)')
  return tonumber(e), tonumber(c), tonumber(o), tonumber(g), code
end

local function set_tries(seg, row, e, c, o, g, code)
  call('HSET', P .. 'a:' .. seg, row, e .. ':' .. c .. ':' .. o .. ':' .. g .. ':' .. code)
end

-- Charge a crashed delivery: of a suspect among the `n` rows of its lease, which ran with nobody
-- else, of another row among `all` that crashed with it. True: the row's deliveries are used up.
local function charge_crash(seg, row, n, all, max_crashes)
  local e, c, o, _, code = tries_of(seg, row)
  n = c > 0 and n or math.min(64, math.max(n, all))
  o = n == 1 and o + 1 or 0
  set_tries(seg, row, e, c + 1, o, math.max(1, math.floor(n / 4)), code)
  return c + 1 >= max_crashes and o >= 2
end

-- A row was given up: note it where operators look.
local function note_dead(seg, row, now, reason, code)
  call('LPUSH', P .. 'dl', table.concat({ now, seg, row, reason, code }, ' '))
  call('LTRIM', P .. 'dl', 0, 999)
end

-- A row was given up and nobody holds it: it waits for its line.
local function bury(seg, row, now, reason, code)
  call('ZADD', P .. 'x:' .. seg, now, row)
  call('HSET', P .. 'y:' .. seg, row, reason .. ' ' .. code)
  call('SADD', P .. 'dead', seg)
  note_dead(seg, row, now, reason, code)
end

-- Rows do not wait for their line any more.
local function revive(seg, rows)
  if call('ZREM', P .. 'x:' .. seg, unpack(rows)) == 0 then return end
  call('HDEL', P .. 'y:' .. seg, unpack(rows))
  if call('EXISTS', P .. 'x:' .. seg) == 0 then call('SREM', P .. 'dead', seg) end
end

-- Nothing is kept of the rows of a segment but their sums.
local function free_rows(seg)
  call('SREM', P .. 'dead', seg)
  local keys = {}
  for name in string.gmatch('kdgfraxy', '.') do keys[#keys + 1] = P .. name .. ':' .. seg end
  call('UNLINK', unpack(keys))
end
