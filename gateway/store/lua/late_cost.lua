#!lua flags=allow-oom
-- Set how much of a target's cost cap one dispatcher holds, within what the others leave.
-- KEYS[1] hash: dispatcher -> spent and reserved, in millionths
-- ARGV: dispatcher, what it has spent or reserved already, what it wants to hold, cap,
--       seconds to keep it
-- Returns what it holds now, and what all hold.
local others = 0
local held = redis.call('HGETALL', KEYS[1])
for at = 1, #held, 2 do
  if held[at] ~= ARGV[1] then
    others = others + tonumber(held[at + 1])
  end
end
local mine = math.max(tonumber(ARGV[2]), math.min(tonumber(ARGV[3]), tonumber(ARGV[4]) - others))
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', mine))
redis.call('EXPIRE', KEYS[1], ARGV[5])
return {mine, others + mine}
