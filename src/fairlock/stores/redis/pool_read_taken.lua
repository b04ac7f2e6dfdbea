-- Read the items of a pool that are taken. Changes nothing.
--
-- Purpose  For `ls` and the page: which owner has which item, without a look at the other items.
-- KEYS     1 items · 2 due, as in pool_step_1_read.lua
--   1 items  hash  the heads of what is taken
--   2 due    zset  the scores above the time
-- ARGV     none
-- Returns  key, score and head of each item, at most 1000; time

local PAGE = 1000
local time = redis.call('TIME')
local now = string.format('%d', time[1] * 1000000 + time[2])
local later = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, PAGE)
local items = {}
for n = 1, #later, 2 do
    local head = redis.call('HGET', KEYS[1], '=' .. later[n])
    if head and string.match(head, '^%d+:%S') then
        items[#items + 1] = {later[n], later[n + 1], head}
    end
end
return {items, time}
