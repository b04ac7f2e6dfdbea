-- Finish what is mine and leave its body as it is, while nobody waits: with two keys and three calls.
--
-- Purpose  A short cut without rules of its own; anything else is left to the full step. It does not look at the clock:
--          nothing that it writes depends on it. If that has gone back, whoever comes next turns back what is due.
-- KEYS     1 items · 2 due, as in pool.lua
--   1 items   hash  : are written, s is read
--   2 due     zset  its score
-- ARGV     1 colon and ticket · 2 fence, a space, key · 3 key
-- Returns  1, or nothing: send the full step

local found = redis.call('HMGET', KEYS[1], ARGV[1], 's')
if found[1] ~= ARGV[2] or (found[2] or '') > ':' then
    return false
end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], '-1', ARGV[3])
return 1
