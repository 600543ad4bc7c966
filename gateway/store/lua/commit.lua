-- Record results: done bit, reference, counters and meter in one step. The first commit of a row
-- wins, whoever sends it; repeating it changes nothing.
-- ARGV: lease, segment, hour, rows (u32 each), refs (16 bytes each),
--       usage (prompt, completion, cached, reasoning: u32 each), good ("1" or "0" each)
-- Returns {fresh, duplicate, closed}.
local lease, seg = ARGV[1], ARGV[2]
local key = P .. 's:' .. seg
local n = #ARGV[4] / 4
local now = now_ms()
local rows = u32s(ARGV[4])
local h = call('HMGET', key, 'status', 'tenant', 'model', 'n', 'weight', 'cur', 'ok', 'bad', 'open', 'prompt', 'completion',
  'cached', 'reasoning', ARGV[3], 'leased')
if h[1] and math.max(unpack(rows)) >= tonumber(h[4]) then
  return redis.error_reply('ERR row is not in the segment')
end
local gone = leave_lease(lease, seg, rows)
local sums = {}
if gone > 0 then sums[1], sums[2] = 'leased', num(h[15]) - gone end
if h[1] ~= 'queued' and h[1] ~= 'cancelling' then
  if h[1] and gone > 0 then call('HSET', key, unpack(sums)) end
  return { 0, 0, n }
end

-- What sets a bit for each row, in one command that tells which were set before.
local function set_each(list)
  local args = {}
  for i = 1, #list do
    args[4 * i - 3], args[4 * i - 2], args[4 * i - 1], args[4 * i] = 'SET', 'u1', list[i], 1
  end
  return args
end

local function write_refs(first, last)
  call('SETRANGE', P .. 'f:' .. seg, rows[first] * 16, string.sub(ARGV[5], first * 16 - 15, last * 16))
end

local all = set_each(rows)
local before = call('BITFIELD', P .. 'd:' .. seg, unpack(all))
local fresh, prompt, completion, cached, reasoning = 0, 0, 0, 0, 0
local new, good, first = {}, {}, nil
for i = 1, n do
  if first and (before[i] == 1 or rows[i] ~= rows[i - 1] + 1) then
    write_refs(first, i - 1)
    first = nil
  end
  if before[i] == 0 then
    first = first or i
    fresh = fresh + 1
    new[fresh] = rows[i]
    if string.byte(ARGV[7], i) == 49 then good[#good + 1] = rows[i] end
    local p, c, k, r = struct.unpack('<I4I4I4I4', ARGV[6], i * 16 - 15)
    prompt, completion, cached, reasoning = prompt + p, completion + c, cached + k, reasoning + r
  end
end
if first then write_refs(first, n) end
if #good > 0 then call('BITFIELD', P .. 'g:' .. seg, unpack(#good == n and all or set_each(good))) end

-- Rows of `new` that some lease holds: their estimates were charged.
local function charged()
  if gone == n then return new end
  local out, cur = {}, tonumber(h[6])
  local waiting, dead = call('ZMSCORE', P .. 'r:' .. seg, unpack(new)), call('ZMSCORE', P .. 'x:' .. seg, unpack(new))
  for i = 1, fresh do
    if not waiting[i] and not dead[i] and new[i] < cur then out[#out + 1] = new[i] end
  end
  return out
end

if fresh > 0 then
  local paid, open = charged(), estimate(seg, new)
  local tokens = prompt + completion - (paid == new and open or estimate(seg, paid))
  settle_tenant(h[2], tokens / tonumber(h[5]), fresh, open)
  if gone < n then
    call('ZREM', P .. 'r:' .. seg, unpack(rows))
    revive(seg, rows)
  end
  if call('EXISTS', P .. 'a:' .. seg) == 1 then call('HDEL', P .. 'a:' .. seg, unpack(rows)) end
  local meter, figures, more = P .. 'm:' .. h[2] .. ':' .. ARGV[3], {}, {}
  local function add(field, figure, by, before)
    if by == 0 then return end
    if field then sums[#sums + 1], sums[#sums + 2] = field, num(before) + by end
    if figure then figures[#figures + 1], more[#more + 1] = h[3] .. '|' .. figure, by end
  end
  add(nil, 'requests', fresh)
  add('ok', nil, #good, h[7])
  add('bad', 'failed', fresh - #good, h[8])
  add('open', nil, -open, h[9])
  add('prompt', 'prompt', prompt, h[10])
  add('completion', 'completion', completion, h[11])
  add('cached', 'cached', cached, h[12])
  add('reasoning', 'reasoning', reasoning, h[13])
  local metered = call('HMGET', meter, unpack(figures))
  for i = #figures, 1, -1 do metered[2 * i - 1], metered[2 * i] = figures[i], num(metered[i]) + more[i] end
  call('HSET', meter, unpack(metered))
  local hour = hour_sums(h[14])
  for i, by in ipairs({ fresh, fresh - #good, prompt, completion, cached, reasoning }) do hour[i] = hour[i] + by end
  sums[#sums + 1], sums[#sums + 2] = ARGV[3], table.concat(hour, ' ')
end
local closes = h[1] == 'queued' and num(h[7]) + num(h[8]) + fresh == tonumber(h[4])
if closes then
  leave_queue(seg, h[2])
  call('ZADD', P .. 'fin', now, seg)
  for _, value in ipairs({ 'status', 'finalizing', 'closing', 'completed' }) do sums[#sums + 1] = value end
end
if #sums > 0 then call('HSET', key, unpack(sums)) end
if h[1] ~= 'queued' then close_if_done(seg, now) end
return { fresh, n - fresh, 0 }
