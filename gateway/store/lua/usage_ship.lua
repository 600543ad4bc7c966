#!lua flags=allow-oom
-- Add the totals of one stretch of one journal file to a tenant's hours, once.
-- KEYS[1] marks   hash: journal file -> offset up to which it is counted
-- KEYS[2..] hours hash: "lane|model|key|status|figure" -> sum
-- ARGV: file, offset the sender counted from, offset it counts to, seconds to keep the hours,
--       then for each hour: number of fields, and so many pairs of field and amount
-- Returns the mark before the call: nothing was added unless it equals the sender's.
local mark = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
if mark ~= tonumber(ARGV[2]) then
  return mark
end
local at = 5
for k = 2, #KEYS do
  local fields = tonumber(ARGV[at])
  at = at + 1
  for _ = 1, fields do
    redis.call('HINCRBY', KEYS[k], ARGV[at], ARGV[at + 1])
    at = at + 2
  end
  redis.call('EXPIRE', KEYS[k], ARGV[4])
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return mark
