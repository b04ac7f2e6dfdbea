-- Release a lock that has no other holder and no queue: one key, three calls.
--
-- Purpose  A shortcut without rules of its own; everything else is left to the full step.
-- KEYS     1 state, as in step_1_read.lua
--   1 state  hash  a is removed
-- ARGV     1 head: the grant up to the ticket, as it is for the only holder · 2 released_fence, '' = any
-- Returns  1; or nil: send the full step

local call = redis.call
local head, released_fence = unpack(ARGV, 1, 2)
local grant = call('HGET', KEYS[1], 'a')
if not grant or string.sub(grant, 1, #head) ~= head then
    return false
end
local _, fence, expires, _, block = cmsgpack.unpack_limit(grant, 4, #head)
local time = call('TIME')
if expires <= time[1] * 1000000 + time[2] then
    return false
end
if released_fence ~= '' and (released_fence + 0 < fence or released_fence + 0 >= fence + block) then
    return false
end
call('HDEL', KEYS[1], 'a')
return 1
