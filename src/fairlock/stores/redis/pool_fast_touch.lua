-- Touch or give back the item of a ticket while nothing waits: two keys, five calls, one more for a new body.
--
-- Purpose  A shortcut without rules of its own; everything else is left to the full step.
-- KEYS     1 items · 2 due, as in pool_step_1_read.lua
--   1 items  hash  = : s # are written
--   2 due    zset  the score of the item
-- ARGV     1 own: a colon and the ticket · 2 item: fence, a space, key · 3 key · 4 body; '': unchanged
--          · 5 after: the rest of an item that is given back; '': it is touched
-- Returns  the lease; or nil: send the full step

local call, format = redis.call, string.format
local own, item, key, body, after = unpack(ARGV, 1, 5)
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local NOW = format('%d', now)
local saved_item, head, seen = unpack(call('HMGET', KEYS[1], own, '=' .. key, 's'))
if saved_item ~= item or (seen or '') > NOW then -- seen > NOW: the clock went back, or it has a letter: a client waits
    return false
end
local fence, lease = string.match(head, '^(%d+)%S* (%d+)')
if after == '' then
    call('HDEL', KEYS[1], 's') -- written again: a script that removes first may write though the memory is full
    call('ZADD', KEYS[2], format('%d', now + lease), key)
    call('HSET', KEYS[1], 's', NOW)
else
    call('HDEL', KEYS[1], own)
    call('ZADD', KEYS[2], format('%d', now + after), key)
    call('HSET', KEYS[1], '=' .. key, fence .. ': ' .. after .. ' 0 0 ', 's', NOW)
end
if body ~= '' then
    call('HSET', KEYS[1], '#' .. key, body)
end
return tonumber(lease)
