-- Acquire a lock that is not held and has no queue: the commonest step with one key and three calls.
--
-- Purpose  A shortcut without rules of its own; everything else is left to the full step.
-- KEYS     1 state, as in step_1_read.lua
--   1 state  hash  n and a are written
-- ARGV     1 own: the ticket, behind its size · 2 amounts: block, weight and lease · 3 texts: listener, owner and note,
--          as an entry has them · 4 requested: the capacity, as in n
-- Returns  the fence; or nil: send the full step
--
-- The caller makes sure that 1 <= weight <= capacity and 1 <= block, and that block is 1 unless weight = capacity.

local N_FENCE, N_PLACE, N_CAPACITY, N_HORIZON = 3, 19, 51, 59
local IDLE, IDLE_IF_FIXED, POLL_TTL = 600000000, 31622400000000, 3000000
local call, pack, unpack_from = redis.call, struct.pack, struct.unpack
local own, amounts, texts, requested = unpack(ARGV, 1, 4)
local numbers, grant = unpack(call('HMGET', KEYS[1], 'n', 'a'))
if grant then
    return false
end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local block, _, lease = unpack_from('<ddd', amounts)
local mark, fence, horizon, idle = '3.', now, 0, IDLE
if numbers then
    mark = string.sub(numbers, 1, 2)
    local same = string.sub(numbers, N_CAPACITY, N_CAPACITY + 7) == requested
    if mark == '3!' and same then
        idle = IDLE_IF_FIXED
    elseif mark ~= '3.' then
        return false
    end
    local last_fence = unpack_from('<d', numbers, N_FENCE)
    if now <= last_fence then
        fence = last_fence + 1
    end
    horizon = same and unpack_from('<d', numbers, N_HORIZON) or 0
elseif call('EXISTS', KEYS[1]) == 1 then
    return false
end
local expires, last = now + lease, fence + block - 1
local entry = pack('<c1dddddBB', '1', fence, expires, now, POLL_TTL, 0, 1, 0) .. amounts .. own .. texts
if expires <= horizon and last <= horizon then
    call('HSET', KEYS[1], 'a', entry, 'n', mark .. pack('<dd', last, now) .. string.sub(numbers, N_PLACE))
else
    local place = numbers and unpack_from('<d', numbers, N_PLACE) or -1
    horizon = math.max(expires, last) + idle / 2
    numbers = mark .. pack('<dddddd', last, now, place, 0, 0, 0) .. requested .. pack('<dddd', horizon, 0, 0, 0)
    call('HSET', KEYS[1], 'a', entry, 'n', numbers)
    call('PEXPIREAT', KEYS[1], string.format('%d', (horizon + idle / 2) / 1000))
end
return fence
