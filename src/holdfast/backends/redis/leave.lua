-- Out of a room with nobody else in it, and nobody in line: one key, three calls.
--
-- Purpose  A short cut without rules of its own; anything else is left to the full step.
-- KEYS     1 door, as in record.lua
--   1 door    hash  a is removed, g is read
-- ARGV     1 ticket · 2 fence, '' = whatever it is
-- Returns  1, or nothing: send the full step

local door = redis.call('HMGET', KEYS[1], 'a', 'g')
if not door[1] or door[2] then
    return false
end
local seat = cmsgpack.unpack(door[1])
if seat[1] ~= ARGV[1] then
    return false
end
local time = redis.call('TIME')
if seat[2] <= time[1] * 1000000 + time[2] then
    return false
end
if ARGV[2] ~= '' and (tonumber(ARGV[2]) < seat[3] or tonumber(ARGV[2]) >= seat[3] + seat[4]) then
    return false
end
redis.call('HDEL', KEYS[1], 'a')
return 1
