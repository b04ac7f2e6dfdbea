-- Into an empty room: the commonest step of the doorman with one key and three calls. Anything else: the full step.
--
-- KEYS     1 door, as in step.lua
-- ARGV     ticket, capacity, weight, lease, block, ear, owner, note
-- Returns  the fence, or false: send step.lua
local door = redis.call('HMGET', KEYS[1], 'a', 'g', 'f', 'c', 'x', 'h')
if door[1] or door[2] or (door[5] == '1' and door[4] ~= ARGV[2]) then
    return false
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local first, block, lease = now, tonumber(ARGV[5]), tonumber(ARGV[4])
if door[3] and now <= tonumber(door[3]) then
    first = door[3] + 1
end
local fence, began = string.format('%.0f', first), string.format('%.0f', now)
local seat = table.concat({ARGV[1], string.format('%.0f', now + lease), fence, ARGV[5], ARGV[3], ARGV[4], '3000000', ARGV[6],
    ARGV[7], ARGV[8], '0', began, '1', '0'}, '\t')
local last = block > 1 and string.format('%.0f', first + block - 1) or fence
if door[6] and tonumber(door[6]) > now + lease + 300000000 then
    redis.call('HSET', KEYS[1], 'a', seat, 'f', last, 'c', ARGV[2], 's', began, 'u', ARGV[3])
else
    local reach = string.format('%.0f', now + lease + 600000000)
    redis.call('HSET', KEYS[1], 'a', seat, 'f', last, 'c', ARGV[2], 's', began, 'u', ARGV[3], 'h', reach)
    redis.call('PEXPIREAT', KEYS[1], string.sub(reach, 1, -4))
end
return fence
