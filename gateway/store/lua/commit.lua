-- Record results: done bit, reference, counters and meter in one step. The first commit of a row
-- wins, whoever sends it; repeating it changes nothing.
-- ARGV: lease, segment, hour, rows (u32 each), refs (16 bytes each),
--       usage (prompt, completion, cached, reasoning: u32 each), good ("1" or "0" each)
-- Returns {fresh, duplicate, closed}.
local lease, seg = ARGV[1], ARGV[2]
local key = P .. 's:' .. seg
local n = #ARGV[4] / 4
local now = now_ms()
local rows, pos = {}, 1
for i = 1, n do rows[i], pos = struct.unpack('<I4', ARGV[4], pos) end
local h = call('HMGET', key, 'status', 'tenant', 'model')
local held = take_from_lease(lease, seg, rows)
if h[1] ~= 'queued' and h[1] ~= 'cancelling' then
  return { 0, 0, n }
end

local fresh, good, prompt, completion, cached, reasoning, upos = 0, 0, 0, 0, 0, 0, 1
for i = 1, n do
  local row = rows[i]
  local p, c, k, r
  p, c, k, r, upos = struct.unpack('<I4I4I4I4', ARGV[6], upos)
  if call('SETBIT', P .. 'd:' .. seg, row, 1) == 0 then
    call('SETRANGE', P .. 'f:' .. seg, row * 16, string.sub(ARGV[5], i * 16 - 15, i * 16))
    if string.byte(ARGV[7], i) == 49 then
      call('SETBIT', P .. 'g:' .. seg, row, 1)
      good = good + 1
    end
    fresh = fresh + 1
    prompt, completion, cached, reasoning = prompt + p, completion + c, cached + k, reasoning + r
  end
end
if fresh > 0 then
  if #held < n then
    call('ZREM', P .. 'r:' .. seg, unpack(rows))
    call('ZREM', P .. 'x:' .. seg, unpack(rows))
    if call('EXISTS', P .. 'x:' .. seg) == 0 then call('SREM', P .. 'dead', seg) end
  end
  call('HDEL', P .. 'a:' .. seg, unpack(rows))
  call('HINCRBY', P .. 'tn:' .. h[2], 'rows', -fresh)
  call('HINCRBY', key, 'ok', good)
  call('HINCRBY', key, 'bad', fresh - good)
  call('HINCRBY', key, 'prompt', prompt)
  call('HINCRBY', key, 'completion', completion)
  call('HINCRBY', key, 'cached', cached)
  call('HINCRBY', key, 'reasoning', reasoning)
  local meter, model = P .. 'm:' .. h[2] .. ':' .. ARGV[3], h[3]
  call('HINCRBY', meter, model .. '|requests', fresh)
  call('HINCRBY', meter, model .. '|failed', fresh - good)
  call('HINCRBY', meter, model .. '|prompt', prompt)
  call('HINCRBY', meter, model .. '|completion', completion)
  call('HINCRBY', meter, model .. '|cached', cached)
  call('HINCRBY', meter, model .. '|reasoning', reasoning)
end
close_if_done(seg, now)
return { fresh, n - fresh, 0 }
