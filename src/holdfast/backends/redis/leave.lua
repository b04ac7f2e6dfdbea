-- Out of a room with nobody else in it, and nobody in line: one key, three calls.
--
-- Purpose  A short cut without rules of its own; anything else is left to step.lua.
-- KEYS     1 door, as in record.lua
--   1 door    hash  a is removed, g is read
-- ARGV     1 ticket · 2 fence, '' = whatever it is
-- Returns  1, or nothing: send step.lua

local door = redis.call('HMGET', KEYS[1], 'a', 'g')
if not door[1] or door[2] then
    return false
end
local ticket, expires, first, block = string.match(door[1], '^([^\t]*)\t(%d+)\t(%d+)\t(%d+)\t')
if ticket ~= ARGV[1] then
    return false
end
local time = redis.call('TIME')
if tonumber(expires) <= time[1] * 1000000 + time[2] then
    return false
end
if ARGV[2] ~= '' and (ARGV[2] - first < 0 or ARGV[2] - first >= tonumber(block)) then
    return false
end
redis.call('HDEL', KEYS[1], 'a')
return 1
