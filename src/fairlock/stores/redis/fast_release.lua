-- Release a lock that has no other holder and no queue, or hand it over to the head of its queue.
--
-- Purpose  The commonest steps without rules of their own; everything else is left to the full step. As a script of its
--          own it releases a lock that no other client wants, with one key and three calls. Its second half is also
--          the first part of the full step (see step_1_read.lua), which has the keys of the queue, too: there it also
--          hands over to a waiter that listens and needs all of the lock.
-- KEYS     1 state, as in step_1_read.lua; in the full step also 2 queue
--   1 state  hash  n and a are written, or a is removed
--   2 queue  zset  the head is removed
-- ARGV     1 own: the ticket, behind its size · 2 released_fence, '' = any
-- Returns  1; or nil: send the full step. In the full step 2 if it was handed over

local call, sub, unpack_from = redis.call, string.sub, struct.unpack
local STATE, numbers = KEYS[1], nil
local own, released_fence = unpack(ARGV, 1, 2)
local grant = call('HGET', STATE, 'a')
if not grant or sub(grant, 1, 1) ~= '1' then
    return false
end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- (also in the full step
local N_FENCE, E_EXPIRES, E_BLOCK, E_TICKET = 3, 10, 44, 68
local CONFIRM_WINDOW, FRESH = 2000000, 0
if grant and sub(grant, E_TICKET, E_TICKET + #own - 1) == own then
    local alone, fence, expires = unpack_from('<c1dd', grant)
    if expires > now and (released_fence == '' or (released_fence + 0 >= fence
        and released_fence + 0 < fence + unpack_from('<d', grant, E_BLOCK))) then
        if alone == '1' then
            call('HDEL', STATE, 'a')
            return 1
        end
        local last, seen, places, size, head, earliest, capacity, horizon, _, _, tombstones =
            unpack_from('<ddddddddddd', numbers, N_FENCE)
        local text, second
        if size > 0 and now >= seen and earliest > now and tombstones == 0 then
            text, second = unpack(call('ZRANGE', QUEUE, '0', '1'))
        end
        if text and sub(text, 1, 1) == '0' then
            local _, _, till, _, _, place, _, passed, block, weight, lease, ticket, listener =
                unpack_from('<c1dddddBBdddHc0Hc0', text)
            local channel = LISTENERS .. listener
            fence, expires = max(last + 1, now), now + min(lease, CONFIRM_WINDOW)
            last = fence + block - 1
            if passed == FRESH and listener ~= '' and weight == capacity and expires <= horizon and last <= horizon
                and call('PUBSUB', 'NUMSUB', channel)[2] > 0 then
                call('ZREM', QUEUE, text, 't' .. ticket, 'x' .. ticket)
                if size == 1 then
                    alone, head, earliest = '1', 0, 0
                else
                    head = unpack_from('<d', second, E_EXPIRES)
                end
                call(
                    'HSET', STATE, 'n', pack(
                        '<c2ddddddddddd', sub(numbers, 1, 2), last, now, places, size - 1, head, earliest, capacity,
                        horizon, 0, 0, 0
                    ),
                    'a', pack(
                        '<c1dddddBBc0', alone, fence, expires, now, till - now, place, 0, 0, sub(text, E_BLOCK)
                    )
                )
                call('PUBLISH', channel, format('%s %d %d', ticket, place, fence))
                return 2
            end
        end
    end
end
-- )

return false
