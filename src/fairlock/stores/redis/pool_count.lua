-- Count the items of a pool by their states. Changes nothing.
--
-- Purpose  For `counts`: items that are done or were never taken are counted by the index; the others are read, page by
--          page.
-- KEYS     1 items · 2 due, as in pool_step_1_read.lua
--   1 items  hash  the heads of one page
--   2 due    zset  all of it
-- ARGV     1 counted: how many items that were ever taken and are not done have been counted
-- Returns  how many of these are on this page, free, resting, taken, expired; and, on the first page, done

local AGO, PAGE = 1000000000000000, 1000
local counted = unpack(ARGV, 1, 1)
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local never_taken = string.format('%d', math.max(now - AGO / 2, 0))
local done = redis.call('ZCOUNT', KEYS[2], '-inf', '(0')
local free = redis.call('ZCOUNT', KEYS[2], '0', '(' .. never_taken)
local first = done + free + counted
local page = redis.call('ZRANGE', KEYS[2], first, first + PAGE - 1, 'WITHSCORES')
if counted ~= '0' then
    done, free = 0, 0
end
local resting, taken, expired = 0, 0, 0
for n = 1, #page, 2 do
    local key, score = page[n], tonumber(page[n + 1])
    local head = redis.call('HGET', KEYS[1], '=' .. key)
    local owned = head and string.match(head, '^%d+:%S')
    if score > now then
        resting, taken = resting + (owned and 0 or 1), taken + (owned and 1 or 0)
    else
        free, expired = free + (owned and 0 or 1), expired + (owned and 1 or 0)
    end
end
return {#page / 2, free, resting, taken, expired, done}
