-- Write the names that one client holds or waits for into the index of busy names.
--
-- Purpose  `ls`, `top` and the page read only what is busy, however many names were ever used. The keeper of each
--          client sends this: the index is one key for all locks, so in a cluster no step of a lock could write it.
-- KEYS     1 busy
--   1 busy  zset  kind, namespace, name and client -> until when it counts, in seconds
-- ARGV     1 dropped: how many members are removed · then these members · then pairs: for how many seconds it counts,
--          and a member
-- Returns  how many members it has now

local call, dropped = redis.call, tonumber(ARGV[1])
local now = call('TIME')[1]
local swept = redis.pcall('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)
if type(swept) == 'table' then -- of another type: another program has written it
    call('DEL', KEYS[1])
end
for n = 2, dropped + 1 do
    call('ZREM', KEYS[1], ARGV[n])
end
for n = dropped + 2, #ARGV, 2 do
    call('ZADD', KEYS[1], string.format('%d', now + ARGV[n]), ARGV[n + 1])
end
return call('ZCARD', KEYS[1])
