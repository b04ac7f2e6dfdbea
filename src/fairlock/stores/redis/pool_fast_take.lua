-- Take any due item while nothing waits: the commonest step of a pool with two keys and five calls.
--
-- Purpose  A shortcut without rules of its own; everything else is left to the full step.
-- KEYS     1 items · 2 due, as in pool_step_1_read.lua
--   1 items  hash  = : s are written, # is read
--   2 due    zset  the lowest score that is due
-- ARGV     1 own: a colon and the ticket · 2 lease · 3 tail: what follows the ticket in the head of the item
-- Returns  fence, a space, key, a zero byte, body, as one text; or nil: send the full step

local call, format = redis.call, string.format
local own, lease, tail = unpack(ARGV, 1, 3)
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local NOW = format('%d', now)
local key = call('ZRANGEBYSCORE', KEYS[2], '0', NOW, 'LIMIT', '0', '1')[1]
if not key then
    return false
end
local head, body, taken, seen = unpack(call('HMGET', KEYS[1], '=' .. key, '#' .. key, own, 's'))
if not body or taken or (seen or '') > NOW then -- seen > NOW: the clock went back, or it has a letter: a client waits
    return false
end
local fence = NOW
if head then
    local last, owner = string.match(head, '^(%d+)(%S*)')
    if now <= tonumber(last) then
        fence = format('%d', last + 1)
    end
    if owner ~= ':' then
        call('HDEL', KEYS[1], owner)
    end
end
call('ZADD', KEYS[2], format('%d', now + lease), key)
local item = fence .. ' ' .. key
call('HSET', KEYS[1], '=' .. key, fence .. own .. tail, own, item, 's', NOW)
return item .. '\0' .. body
