-- Out of a room with nobody else in it, and nobody in line: one key, three calls.
--
-- Purpose  A short cut without rules of its own; anything else is left to the full step.
-- KEYS     1 door, as in record.lua
--   1 door    hash  a is removed
-- ARGV     1 seat up to the ticket, of one who is there alone · 2 fence, '' = whatever it is
-- Returns  1, or nothing: send the full step

local call = redis.call
local seat, head = call('HGET', KEYS[1], 'a'), ARGV[1]
if not seat or string.sub(seat, 1, #head) ~= head then
    return false
end
local _, fence, expires, _, block = cmsgpack.unpack_limit(seat, 4, #head)
local time = call('TIME')
if expires <= time[1] * 1000000 + time[2] then
    return false
end
if ARGV[2] ~= '' and (ARGV[2] + 0 < fence or ARGV[2] + 0 >= fence + block) then
    return false
end
call('HDEL', KEYS[1], 'a')
return 1
