-- Record results: done bit, reference, counters and meter in one step. The first commit of a row
-- wins, whoever sends it; repeating it changes nothing. Runs of one tenant share what is written of it.
-- ARGV: hour, then per run: lease, segment, rows (u32 each), refs (16 bytes each),
--       usage (prompt, completion, cached, reasoning: u32 each), good ("1" or "0" each)
-- Returns {fresh, duplicate, closed, ...}; fresh is -1 for a run with a row that its segment does not
-- have, or whose segment is broken.
local hour = ARGV[1]
local now = now_ms()
local tenants, leases, answers = {}, {}, {}

-- Set a bit for each row. Returns which were set before.
local function set_bits(key, rows)
  if #rows == 1 then return { call('SETBIT', key, rows[1], 1) } end
  local args = {}
  for i = 1, #rows do
    args[4 * i - 3], args[4 * i - 2], args[4 * i - 1], args[4 * i] = 'SET', 'u1', rows[i], 1
  end
  return call('BITFIELD', key, unpack(args))
end

local function write_refs(seg, rows, refs, first, last)
  call('SETRANGE', P .. 'f:' .. seg, rows[first] * 16, string.sub(refs, first * 16 - 15, last * 16))
end

-- Rows become done. Returns those that were not, the good ones among them, and what they used.
local function mark(seg, rows, refs, usage, ok)
  local before = set_bits(P .. 'd:' .. seg, rows)
  local fresh, prompt, completion, cached, reasoning = 0, 0, 0, 0, 0
  local new, good, first = {}, {}, nil
  for i = 1, #rows do
    if first and (before[i] == 1 or rows[i] ~= rows[i - 1] + 1) then
      write_refs(seg, rows, refs, first, i - 1)
      first = nil
    end
    if before[i] == 0 then
      first = first or i
      fresh = fresh + 1
      new[fresh] = rows[i]
      if string.byte(ok, i) == 49 then good[#good + 1] = rows[i] end
      local p, c, k, r = struct.unpack('<I4I4I4I4', usage, i * 16 - 15)
      prompt, completion, cached, reasoning = prompt + p, completion + c, cached + k, reasoning + r
    end
  end
  if first then write_refs(seg, rows, refs, first, #rows) end
  if #good > 0 then set_bits(P .. 'g:' .. seg, good) end
  return new, #good, prompt, completion, cached, reasoning
end

-- Estimates of rows of `new` that were charged: of those that some lease holds.
local function charged(seg, new, cur)
  local out = {}
  local waiting, dead = call('ZMSCORE', P .. 'r:' .. seg, unpack(new)), call('ZMSCORE', P .. 'x:' .. seg, unpack(new))
  for i = 1, #new do
    if not waiting[i] and not dead[i] and new[i] < cur then out[#out + 1] = new[i] end
  end
  return estimate(seg, out)
end

-- What is to be written of a tenant in the end.
local function account(tenant)
  tenants[tenant] = tenants[tenant] or { vt = 0, rows = 0, tokens = 0, counts = {} }
  return tenants[tenant]
end

-- Settle rows of a segment; `held` says that all of them were in the lease. Returns how many were new.
local function settle(seg, h, rows, refs, usage, ok, held, sums)
  local n = #rows
  local new, good, prompt, completion, cached, reasoning = mark(seg, rows, refs, usage, ok)
  local fresh = #new
  if fresh == 0 then return 0 end
  local open = estimate(seg, new)
  local paid = held and open or charged(seg, new, tonumber(h[6]))
  if not held then
    call('ZREM', P .. 'r:' .. seg, unpack(rows))
    revive(seg, rows)
  end
  if call('EXISTS', P .. 'a:' .. seg) == 1 then call('HDEL', P .. 'a:' .. seg, unpack(rows)) end
  local a, by, hours = account(h[2]), { fresh, fresh - good, prompt, completion, cached, reasoning }, hour_sums(h[14])
  a.vt = a.vt + (prompt + completion - paid) / tonumber(h[5])
  a.rows, a.tokens = a.rows + fresh, a.tokens + open
  for i = 1, #FIGURES do
    local name = h[3] .. '|' .. FIGURES[i]
    if by[i] ~= 0 then a.counts[name] = (a.counts[name] or 0) + by[i] end
    hours[i] = hours[i] + by[i]
  end
  local function add(field, more, had)
    if more ~= 0 then sums[#sums + 1], sums[#sums + 2] = field, num(had) + more end
  end
  add('ok', good, h[7])
  add('bad', fresh - good, h[8])
  add('open', -open, h[9])
  add('prompt', prompt, h[10])
  add('completion', completion, h[11])
  add('cached', cached, h[12])
  add('reasoning', reasoning, h[13])
  sums[#sums + 1], sums[#sums + 2] = hour, table.concat(hours, ' ')
  return fresh
end

local function commit(lease, seg, blob, refs, usage, ok)
  local key, rows = P .. 's:' .. seg, u32s(blob)
  local h = call('HMGET', key, 'status', 'tenant', 'model', 'n', 'weight', 'cur', 'ok', 'bad', 'open', 'prompt',
    'completion', 'cached', 'reasoning', hour, 'leased')
  if h[1] and math.max(unpack(rows)) >= tonumber(h[4]) then return -1, 0, 0 end
  local gone, fresh, sums = call('SREM', P .. 'lr:' .. lease .. ':' .. seg, unpack(rows)), 0, {}
  leases[lease] = (leases[lease] or 0) + gone
  local takes = h[1] == 'queued' or h[1] == 'cancelling'
  if h[1] and gone > 0 then sums[1], sums[2] = 'leased', num(h[15]) - gone end
  if takes then fresh = settle(seg, h, rows, refs, usage, ok, gone == #rows, sums) end
  if h[1] == 'queued' and num(h[7]) + num(h[8]) + fresh == tonumber(h[4]) then
    leave_queue(seg, h[2])
    call('ZADD', P .. 'fin', now, seg)
    for _, value in ipairs({ 'status', 'finalizing', 'closing', 'completed' }) do sums[#sums + 1] = value end
  end
  if #sums > 0 then call('HSET', key, unpack(sums)) end
  if h[1] == 'cancelling' then close_if_done(seg, now) end
  if not takes then return 0, 0, #rows end
  return fresh, #rows - fresh, 0
end

for i = 2, #ARGV, 6 do
  -- a segment whose keys are broken must not keep the others from their meter
  local fine, fresh, duplicate, closed =
    pcall(commit, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
  if not fine then fresh, duplicate, closed = -1, 0, 0 end
  answers[#answers + 1], answers[#answers + 2], answers[#answers + 3] = fresh, duplicate, closed
end
for lease, gone in pairs(leases) do lower(lease, gone) end
for tenant, a in pairs(tenants) do
  settle_tenant(tenant, a.vt, a.rows, a.tokens)
  local key, figures = P .. 'm:' .. tenant .. ':' .. hour, {}
  for figure in pairs(a.counts) do figures[#figures + 1] = figure end
  local metered = call('HMGET', key, unpack(figures))
  for i = #figures, 1, -1 do
    metered[2 * i - 1], metered[2 * i] = figures[i], num(metered[i]) + a.counts[figures[i]]
  end
  call('HSET', key, unpack(metered))
end
return answers
