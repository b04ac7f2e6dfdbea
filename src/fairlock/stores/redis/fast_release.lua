-- Release a lock that has no other holder and no queue: one key, three calls.
--
-- Purpose  A shortcut without rules of its own; everything else is left to the full step.
-- KEYS     1 state, as in step_1_read.lua
--   1 state  hash  a is removed
-- ARGV     1 own: the ticket, behind its size · 2 released_fence, '' = any
-- Returns  1; or nil: send the full step

local E_BLOCK, E_TICKET = 44, 68
local call, sub, unpack_from = redis.call, string.sub, struct.unpack
local own, released_fence = unpack(ARGV, 1, 2)
local grant = call('HGET', KEYS[1], 'a')
if not grant or sub(grant, 1, 1) ~= '1' or sub(grant, E_TICKET, E_TICKET + #own - 1) ~= own then
    return false
end
local _, fence, expires = unpack_from('<c1dd', grant)
local time = call('TIME')
if expires <= time[1] * 1000000 + time[2] then
    return false
end
if released_fence ~= '' and (released_fence + 0 < fence
    or released_fence + 0 >= fence + unpack_from('<d', grant, E_BLOCK)) then
    return false
end
call('HDEL', KEYS[1], 'a')
return 1
