-- Acquire a lock that is not held and has no queue, or join the queue of a lock that has one holder.
--
-- Purpose  The commonest steps without rules of their own; everything else is left to the full step. As a script of its
--          own it acquires a lock that is not held, with one key and three calls. Its second half is also the first
--          part of the full step (see step_1_read.lua), which has the keys of the queue, too: there it also joins.
-- KEYS     1 state, as in step_1_read.lua; in the full step also 2 queue
--   1 state  hash  n and a are written
--   2 queue  zset  a newcomer is added
-- ARGV     1 own: the ticket, behind its size · 2 amounts: block, weight and lease · 3 texts: listener, owner and note,
--          as an entry has them · 4 requested: the capacity, as in n
-- Returns  the fence; or nil: send the full step. In the full step, for a newcomer that joins: ahead, place, retry_in

local call, sub, pack, unpack_from = redis.call, string.sub, struct.pack, struct.unpack
local STATE, waits = KEYS[1], 0
local own, amounts, texts, requested = unpack(ARGV, 1, 4)
local numbers, grant = unpack(call('HMGET', STATE, 'n', 'a'))
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local wanted, tail = unpack_from('<d', requested), amounts .. own .. texts
local block, weight, lease = unpack_from('<ddd', amounts)

-- (also in the full step
local N_FENCE, N_PLACE, N_CAPACITY, N_HORIZON = 3, 19, 51, 59
local TICKETS, EXPIRIES = 2000000000000000, 4000000000000000
local CONFIRM_WINDOW, SLEEP_CAP, POLL_TTL = 2000000, 10000000, 3000000
local IDLE, IDLE_IF_FIXED = 600000000, 31622400000000
if weight < 1 or weight > wanted or (block > 1 and weight ~= wanted) then
    -- perhaps a mismatch
elseif not grant then
    local mark, fence, horizon, same = '3.', now, 0, false
    if numbers then
        mark, same = sub(numbers, 1, 2), unpack_from('<d', numbers, N_CAPACITY) == wanted
        local last_fence = unpack_from('<d', numbers, N_FENCE)
        if now <= last_fence then
            fence = last_fence + 1
        end
        horizon = same and unpack_from('<d', numbers, N_HORIZON) or 0
    end
    if mark == '3.' and (numbers or call('EXISTS', STATE) == 0) or mark == '3!' and same then
        local expires, last = now + lease, fence + block - 1
        local entry = pack('<c1dddddBBc0', '1', fence, expires, now, POLL_TTL, 0, 1, 0, tail)
        if expires <= horizon and last <= horizon then
            call('HSET', STATE, 'a', entry, 'n', pack('<c2ddc0', mark, last, now, sub(numbers, N_PLACE)))
        else
            local place = numbers and unpack_from('<d', numbers, N_PLACE) or -1
            local idle = mark == '3!' and IDLE_IF_FIXED or IDLE
            horizon = math.max(expires, last) + idle / 2
            numbers = mark .. pack('<ddddddddddd', last, now, place, 0, 0, 0, wanted, horizon, 0, 0, 0)
            call('HSET', STATE, 'a', entry, 'n', numbers)
            call('PEXPIREAT', STATE, string.format('%d', (horizon + idle / 2) / 1000))
        end
        return fence
    end
elseif waits == 1 and grant ~= '' and numbers then
    local fence, seen, place, size, head, earliest, capacity, horizon, _, _, tombstones =
        unpack_from('<ddddddddddd', numbers, N_FENCE)
    local _, _, expires, _, _, _, confirmed, _, _, used, _, holder = unpack_from('<c1dddddBBdddHc0', grant)
    local poll_ttl = 3 * min(CONFIRM_WINDOW / 2 * (size + 1), SLEEP_CAP)
    local till, mark = now + poll_ttl, sub(numbers, 1, 2)
    if expires > now and now >= seen and used == capacity and wanted == capacity and tombstones == 0 and place >= 0
        and (size == 0 or earliest > now) and lease >= CONFIRM_WINDOW and till <= horizon and holder ~= TICKET then
        local entry = pack('<c1dddddBBc0', '0', 0, till, now, poll_ttl, place + 1, 0, 0, tail)
        local added = redis.pcall(
            'ZADD', QUEUE, 'NX', format('%d', place + 1), entry, format('%d', TICKETS + place + 1), 't' .. TICKET,
            format('%d', EXPIRIES + till), 'x' .. TICKET
        )
        if added == 3 then
            local retry_at = expires
            if size == 0 then
                head, earliest = till, till
            else
                retry_at, earliest = confirmed == 0 and min(head, expires) or head, min(earliest, till)
            end
            numbers = pack(
                '<c2ddddddddddd', mark, fence, now, place + 1, size + 1, head, earliest, capacity, horizon, 0, 0, 0
            )
            if size == 0 then
                call('HSET', STATE, 'n', numbers, 'a', '0' .. sub(grant, 2))
                local idle = mark == '3!' and IDLE_IF_FIXED or IDLE
                call('PEXPIREAT', QUEUE, format('%d', (horizon + idle / 2) / 1000))
            else
                call('HSET', STATE, 'n', numbers)
            end
            return {size, place + 1, max(retry_at - now, 1)}
        elseif added == 1 then -- it is in the queue
            call('ZREM', QUEUE, entry)
        end
    end
end
-- )

return false
