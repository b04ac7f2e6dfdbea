-- Finish the item of a ticket while nothing waits: two keys, three calls, one more for a new body.
--
-- Purpose  A shortcut without rules of its own; everything else is left to the full step. It does not read the clock:
--          nothing that it writes depends on it. If the clock has gone back, the next full step adjusts what is due.
-- KEYS     1 items · 2 due, as in pool_step_1_read.lua
--   1 items  hash  : # are written, s is read
--   2 due    zset  the score of the item
-- ARGV     1 own: a colon and the ticket · 2 item: fence, a space, key · 3 key · 4 body; '': unchanged
-- Returns  1; or nil: send the full step

local call = redis.call
local own, item, key, body = unpack(ARGV, 1, 4)
local saved_item, seen = unpack(call('HMGET', KEYS[1], own, 's'))
if saved_item ~= item or (seen or '') > ':' then -- seen > ':': it begins with a letter, so a client waits
    return false
end
call('HDEL', KEYS[1], own)
call('ZADD', KEYS[2], '-1', key)
if body ~= '' then
    call('HSET', KEYS[1], '#' .. key, body)
end
return 1
