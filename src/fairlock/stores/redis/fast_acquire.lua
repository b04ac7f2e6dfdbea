-- Acquire a lock that is not held and has no queue: the commonest step with one key and three calls.
--
-- Purpose  A shortcut without rules of its own; everything else is left to the full step.
-- KEYS     1 state, as in step_1_read.lua
--   1 state  hash  a, f, c and h are written
-- ARGV     1 head: the grant up to the ticket · 2 tail: the grant from its block on · 3 capacity · 4 lease · 5 block
-- Returns  the fence; or nil: send the full step
--
-- The caller makes sure that 1 <= weight <= capacity and 1 <= block, and that block is 1 unless weight = capacity. The
-- head and the tail are MessagePack already; only the three times between them are added here.

local call = redis.call
local head, tail, capacity, lease, block = unpack(ARGV, 1, 5)
local grant, last_fence, saved_capacity, saved_horizon = unpack(call('HMGET', KEYS[1], 'a', 'f', 'c', 'h'))
if grant then
    return false
end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local fence, horizon, idle, new_capacity = now, 0, 600000000, nil
if saved_capacity == capacity then
    horizon = saved_horizon + 0
elseif saved_capacity == capacity .. '!' then
    horizon, idle = saved_horizon + 0, 31622400000000
elseif saved_capacity and string.sub(saved_capacity, -1) == '!' then
    return false
else
    new_capacity = capacity
end
if last_fence and now <= last_fence + 0 then
    fence = last_fence + 1
end
local expires, last = now + lease, fence + block - 1
local entry = head .. cmsgpack.pack(fence, expires, now) .. tail
if expires <= horizon and last <= horizon then
    call('HSET', KEYS[1], 'a', entry, 'f', last)
else
    horizon = math.max(expires, last) + idle / 2
    call('HSET', KEYS[1], 'a', entry, 'f', last, 'c', new_capacity or saved_capacity, 'h', horizon)
    call('PEXPIREAT', KEYS[1], math.floor((horizon + idle / 2) / 1000))
end
return fence
