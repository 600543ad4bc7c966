#!lua flags=allow-oom
-- Move a batch to another state if it is in one that allows it.
-- KEYS[1] hash of the batch
-- ARGV[1] states it may be in, as ",a,b,"; ARGV[2] new state; ARGV[3..] field, value, ...
-- Returns the state before ("" when there is no such batch).
local status = redis.call('HGET', KEYS[1], 'status')
if not status then
  return ''
end
if string.find(ARGV[1], ',' .. status .. ',', 1, true) then
  redis.call('HSET', KEYS[1], 'status', ARGV[2], unpack(ARGV, 3))
end
return status
