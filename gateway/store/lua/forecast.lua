-- Replace the forecasts of the shard.
-- ARGV: seconds they are good for, then segment, forecast, ...
call('DEL', P .. 'fc')
if #ARGV > 1 then
  call('HSET', P .. 'fc', unpack(ARGV, 2))
  call('EXPIRE', P .. 'fc', ARGV[1])
end
return 1
