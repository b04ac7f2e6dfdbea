-- Any item that is due, while nobody waits: the commonest step of a pool with two keys and five calls.
--
-- Purpose  A short cut without rules of its own; anything else is left to the full step.
-- KEYS     1 items · 2 due, as in pool.lua
--   1 items   hash  = : s are written, # is read
--   2 due     zset  the lowest that is due
-- ARGV     1 colon and ticket · 2 lease · 3 what is to stand behind the ticket in the item's head
-- Returns  fence, a space, key, a zero byte, body, as one text; or nothing: send the full step

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local NOW = string.format('%d', now)
local key = redis.call('ZRANGEBYSCORE', KEYS[2], '0', NOW, 'LIMIT', '0', '1')[1]
if not key then
    return false
end
local found = redis.call('HMGET', KEYS[1], '=' .. key, '#' .. key, ARGV[1], 's')
local head, body = found[1], found[2]
if not body or found[3] or (found[4] or '') > NOW then -- the clock went back; or a letter: somebody waits
    return false
end
local fence = NOW
if head then
    local last, before = string.match(head, '^(%d+)(%S*)')
    if now <= tonumber(last) then
        fence = string.format('%d', last + 1)
    end
    if before ~= ':' then
        redis.call('HDEL', KEYS[1], before)
    end
end
redis.call('ZADD', KEYS[2], string.format('%d', now + ARGV[2]), key)
local mine = fence .. ' ' .. key
redis.call('HSET', KEYS[1], '=' .. key, fence .. ARGV[1] .. ARGV[3], ARGV[1], mine, 's', NOW)
return mine .. '\0' .. body
