-- Finish the item of a ticket and keep its body, while nothing waits: two keys and three calls.
--
-- Purpose  A shortcut without rules of its own; everything else is left to the full step. It does not read the clock:
--          nothing that it writes depends on it. If the clock has gone back, the next full step adjusts what is due.
-- KEYS     1 items · 2 due, as in pool_step_1_read.lua
--   1 items  hash  : are written, s is read
--   2 due    zset  the score of the item
-- ARGV     1 own: a colon and the ticket · 2 item: fence, a space, key · 3 key
-- Returns  1; or nil: send the full step

local own, item, key = unpack(ARGV, 1, 3)
local saved_item, seen = unpack(redis.call('HMGET', KEYS[1], own, 's'))
if saved_item ~= item or (seen or '') > ':' then -- seen > ':': it begins with a letter, so a client waits
    return false
end
redis.call('HDEL', KEYS[1], own)
redis.call('ZADD', KEYS[2], '-1', key)
return 1
