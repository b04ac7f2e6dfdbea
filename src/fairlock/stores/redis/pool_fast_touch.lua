-- Touch, give back or finish the item of a ticket while nothing waits: two keys, five calls, one more for a new body.
--
-- Purpose  A shortcut without rules of its own; everything else is left to the full step.
-- KEYS     1 items · 2 due, as in pool_step_1_read.lua
--   1 items  hash  = : s # are written
--   2 due    zset  the score of the item
-- ARGV     1 order: touch, give or finish · 2 own: a colon and the ticket · 3 item: fence, a space, key · 4 key
--          · 5 after · 6 body; '': unchanged
-- Returns  the lease; or nil: send the full step

local order, own, item, key, after, body = unpack(ARGV, 1, 6)
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local NOW = string.format('%d', now)
local saved_item, head, seen = unpack(redis.call('HMGET', KEYS[1], own, '=' .. key, 's'))
if saved_item ~= item or (seen or '') > NOW then -- seen > NOW: the clock went back, or it has a letter: a client waits
    return false
end
local fence, lease = string.match(head, '^(%d+)%S* (%d+)')
if order == 'touch' then
    redis.call('HDEL', KEYS[1], 's') -- written again: a script that removes first may write though the memory is full
    redis.call('ZADD', KEYS[2], string.format('%d', now + lease), key)
    redis.call('HSET', KEYS[1], 's', NOW)
elseif order == 'give' then
    redis.call('HDEL', KEYS[1], own)
    redis.call('ZADD', KEYS[2], string.format('%d', now + after), key)
    redis.call('HSET', KEYS[1], '=' .. key, fence .. ': ' .. after .. ' 0 0 ', 's', NOW)
else
    redis.call('HDEL', KEYS[1], own)
    redis.call('ZADD', KEYS[2], '-1', key)
    redis.call('HSET', KEYS[1], 's', NOW)
end
if body ~= '' then
    redis.call('HSET', KEYS[1], '#' .. key, body)
end
return tonumber(lease)
