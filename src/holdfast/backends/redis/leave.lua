-- Out of a room with nobody else in it: one key, three calls. Anything else: the full step.
--
-- KEYS     1 door, as in step.lua
-- ARGV     ticket, fence ('' = whatever it is)
-- Returns  1, or false: send step.lua
local seat = redis.call('HGET', KEYS[1], 'a')
if not seat then
    return false
end
local ticket, expires, first, block = string.match(seat, '^([^\t]*)\t(%d+)\t(%d+)\t(%d+)\t')
if ticket ~= ARGV[1] then
    return false
end
local time = redis.call('TIME')
if tonumber(expires) <= time[1] * 1000000 + time[2] then
    return false
end
if ARGV[2] ~= '' then
    local past = ARGV[2] - first
    if past < 0 or past >= tonumber(block) then
        return false
    end
end
redis.call('HDEL', KEYS[1], 'a', 'u')
return 1
