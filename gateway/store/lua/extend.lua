-- Keep leases; learn which are gone and which segments must stop.
-- ARGV: worker, ttl ms, lease, ...
-- Returns {{lease, ms left, ...}, {gone lease, ...}, {stopped segment, ...}}.
local now = now_ms()
local ttl = tonumber(ARGV[2])
local alive, gone, stopped, seen = {}, {}, {}, {}
for i = 3, #ARGV do
  local lease = ARGV[i]
  if call('HGET', P .. 'l:' .. lease, 'worker') == ARGV[1] then
    call('ZADD', P .. 'exp', now + ttl, lease)
    alive[#alive + 1] = lease
    alive[#alive + 1] = ttl
    for _, seg in ipairs(call('SMEMBERS', P .. 'ls:' .. lease)) do
      if not seen[seg] then
        seen[seg] = true
        if call('HGET', P .. 's:' .. seg, 'status') ~= 'queued' then stopped[#stopped + 1] = seg end
      end
    end
  else
    gone[#gone + 1] = lease
  end
end
return { alive, gone, stopped }
