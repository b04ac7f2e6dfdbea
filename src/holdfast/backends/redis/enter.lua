-- Into an empty room, with nobody in line: the commonest step of the doorman with one key and three calls.
--
-- Purpose  A short cut without rules of its own; anything else is left to the full step.
-- KEYS     1 door, as in record.lua
--   1 door    hash  a, f, c, s and h are written, g and x are read
-- ARGV     1 ticket · 2 capacity · 3 weight · 4 lease · 5 block · 6 ear · 7 owner · 8 note
-- Returns  the fence, or nothing: send the full step
--
-- The caller has seen to it that 1 <= weight <= capacity, and 1 <= block, more than 1 only if weight = capacity.

local door = redis.call('HMGET', KEYS[1], 'a', 'g', 'f', 'c', 'x', 'h')
if door[1] or door[2] or (door[5] == '1' and door[4] ~= ARGV[2]) then
    return false
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local since = string.format('%.0f', now)
local lease, block = tonumber(ARGV[4]), tonumber(ARGV[5])
local first, fence = now, since
if door[3] and now <= tonumber(door[3]) then
    first = door[3] + 1
    fence = string.format('%.0f', first)
end
local last = block == 1 and fence or string.format('%.0f', first + block - 1)
local seat = cmsgpack.pack({
    ARGV[1], now + lease, first, block, tonumber(ARGV[3]), lease, 3000000, ARGV[6], ARGV[7], ARGV[8], 0, now, 1, 0,
})
local far = math.max(now + lease, first + block - 1)
local idle = door[5] == '1' and 31622400000000 or 600000000
if door[6] and tonumber(door[6]) >= far + idle / 2 then
    redis.call('HSET', KEYS[1], 'a', seat, 'f', last, 'c', ARGV[2], 's', since)
else
    local reach = string.format('%.0f', far + idle)
    redis.call('HSET', KEYS[1], 'a', seat, 'f', last, 'c', ARGV[2], 's', since, 'h', reach)
    redis.call('PEXPIREAT', KEYS[1], string.sub(reach, 1, -4))
end
return fence
