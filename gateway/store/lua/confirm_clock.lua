-- An operator says that the server's clock is right: deadlines count again.
-- Returns the jump in ms that was seen, 0 when there was none.
local jump = num(call('HGET', KEYS[1], 'jump'))
call('HDEL', KEYS[1], 'jump')
return jump
