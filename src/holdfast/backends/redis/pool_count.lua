-- How many items of a pool are in which state. Changes nothing.
--
-- Purpose  What `counts` reads: what is done and what was never taken is counted by the index, the rest by looking,
--          page by page.
-- KEYS     1 items · 2 due, as in pool.lua
--   1 items   hash  some of it
--   2 due     zset  all of it
-- ARGV     1 how many of those that were ever taken and are not done have been counted
-- Returns  how many of those are on this page, free, resting, taken, expired; and, on the first page, done

local AGO, PAGE = 1000000000000000, 1000
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local new = string.format('%d', math.max(now - AGO / 2, 0))
local done = redis.call('ZCOUNT', KEYS[2], '-inf', '(0')
local free = redis.call('ZCOUNT', KEYS[2], '0', '(' .. new)
local first = done + free + ARGV[1]
local page = redis.call('ZRANGE', KEYS[2], first, first + PAGE - 1, 'WITHSCORES')
if ARGV[1] ~= '0' then
    done, free = 0, 0
end
local resting, taken, expired = 0, 0, 0
for n = 1, #page, 2 do
    local head = redis.call('HGET', KEYS[1], '=' .. page[n])
    local owned = head and string.match(head, '^%d+:%S')
    if tonumber(page[n + 1]) > now then
        resting, taken = resting + (owned and 0 or 1), taken + (owned and 1 or 0)
    else
        free, expired = free + (owned and 0 or 1), expired + (owned and 1 or 0)
    end
end
return {#page / 2, free, resting, taken, expired, done}
