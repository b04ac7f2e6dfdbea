-- Into an empty room, with nobody in line: the commonest step of the doorman with one key and three calls.
--
-- Purpose  A short cut without rules of its own; anything else is left to the full step.
-- KEYS     1 door, as in record.lua
--   1 door    hash  a, f, c and h are written
-- ARGV     1 seat up to the ticket · 2 seat from its block on · 3 capacity · 4 lease · 5 block
-- Returns  the fence, or nothing: send the full step
--
-- The caller has seen to it that 1 <= weight <= capacity, and 1 <= block, more than 1 only if weight = capacity. The
-- seat in its parts is MessagePack already; only the three times between them are added here.

local call = redis.call
local door = call('HMGET', KEYS[1], 'a', 'f', 'c', 'h')
if door[1] then
    return false
end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local first, reach, idle, capacity = now, 0, 600000000, nil
if door[3] == ARGV[3] then
    reach = door[4] + 0
elseif door[3] == ARGV[3] .. '!' then
    reach, idle = door[4] + 0, 31622400000000
elseif door[3] and string.sub(door[3], -1) == '!' then
    return false
else
    capacity = ARGV[3]
end
if door[2] and now <= door[2] + 0 then
    first = door[2] + 1
end
local expires, last = now + ARGV[4], first + ARGV[5] - 1
local seat = ARGV[1] .. cmsgpack.pack(first, expires, now) .. ARGV[2]
if expires <= reach and last <= reach then
    call('HSET', KEYS[1], 'a', seat, 'f', last)
else
    reach = math.max(expires, last) + idle / 2
    call('HSET', KEYS[1], 'a', seat, 'f', last, 'c', capacity or door[3], 'h', reach)
    call('PEXPIREAT', KEYS[1], math.floor((reach + idle / 2) / 1000))
end
return first
