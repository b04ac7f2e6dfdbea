-- The lock step, part 2 of 6: a shortcut for the two commonest steps of a contended lock.
--
-- Purpose  Joins the queue, or releases and grants to the head of the queue, in half of the time. It has no rules of
--          its own and applies only if one holder has all of the capacity, others wait, there are no tombstones,
--          nothing has expired, and the clock has not gone back. In all other cases the step continues below. Entries
--          are read and written as arrays.
-- KEYS     as in step_1_read.lua
-- ARGV     as in step_5_command.lua
-- Returns  the same as step_6_write.lua, or continues

do
    local limit = num(saved_capacity)
    local lone = saved_in_use == 'q' and saved_grant ~= '' and cmsgpack.unpack(saved_grant)
    if lone and lone[E_WEIGHT] == limit and lone[E_EXPIRES] > now and now >= saved_seen + 0 then
        local remaining = saved_horizon - now -- nothing that is written here may last longer
        if COMMAND == 'acquire' and not saved_entry and lone[E_TICKET] ~= TICKET and ARGV[ACQUIRE_WAIT] == '1'
            and ARGV[ACQUIRE_CAPACITY] == saved_capacity
            and ARGV[ACQUIRE_WEIGHT] + 0 >= 1 and ARGV[ACQUIRE_WEIGHT] + 0 <= limit
            and ARGV[ACQUIRE_LEASE] + 0 >= CONFIRM_WINDOW and remaining >= 3 * SLEEP_CAP then
            local first_ticket, first_expiry = unpack(call('ZRANGE', WAITER_EXPIRY, 0, 0, 'WITHSCORES'))
            local head = call('ZRANGE', QUEUE, 0, 0)[1]
            if head and first_expiry and first_expiry + 0 > now then
                local retry_at, waiters, place = first_expiry + 0, call('ZCARD', QUEUE), saved_place + 1
                if first_ticket ~= head then
                    retry_at = cmsgpack.unpack(call('HGET', STATE, ':' .. head))[E_EXPIRES]
                end
                retry_at = lone[E_CONFIRMED] > 0 and retry_at or min(retry_at, lone[E_EXPIRES])
                local poll_ttl = 3 * min(CONFIRM_WINDOW / 2 * (waiters + 1), SLEEP_CAP)
                local block = ARGV[ACQUIRE_WEIGHT] == saved_capacity and max(ARGV[ACQUIRE_BLOCK] + 0, 1) or 1
                call('ZADD', QUEUE, place, TICKET)
                call('ZADD', WAITER_EXPIRY, now + poll_ttl, TICKET)
                call('HSET', STATE, 's', now, 'p', place, ':' .. TICKET, cmsgpack.pack({
                    0, TICKET, 0, now + poll_ttl, now, -- alone ticket fence expires since
                    block, ARGV[ACQUIRE_WEIGHT] + 0, ARGV[ACQUIRE_LEASE] + 0, poll_ttl, -- block weight lease poll_ttl
                    ARGV[ACQUIRE_LISTENER], ARGV[ACQUIRE_OWNER], ARGV[ACQUIRE_NOTE], -- listener owner note
                    place, 0, FRESH, -- place confirmed passed
                }))
                return {'queued', waiters, place, retry_at - now, '0'}
            end
        elseif COMMAND == 'release' and lone[E_TICKET] == TICKET and ARGV[RELEASE_LEAVE_TOMBSTONE] == '0'
            and not num(ARGV[RELEASE_LEASE]) and saved_fence + 0 < now
            and (ARGV[RELEASE_FENCE] == '' or (ARGV[RELEASE_FENCE] + 0 >= lone[E_FENCE]
            and ARGV[RELEASE_FENCE] + 0 < lone[E_FENCE] + lone[E_BLOCK])) then
            local first_expiry = call('ZRANGE', WAITER_EXPIRY, 0, 0, 'WITHSCORES')[2]
            local ticket, second = unpack(call('ZRANGE', QUEUE, 0, 1))
            local head = ticket and first_expiry and first_expiry + 0 > now
                and cmsgpack.unpack(call('HGET', STATE, ':' .. ticket))
            if head and head[E_WEIGHT] == limit and remaining >= max(3 * SLEEP_CAP, head[E_BLOCK])
                and head[E_PASSED] ~= SILENT
                and (head[E_LISTENER] ~= '' or lone[E_LISTENER] ~= '')
                and (head[E_LISTENER] == '' or head[E_PASSED] == HEARD or count_subscribers(head[E_LISTENER]) > 0) then
                local alone, wakeup = not second, ticket .. format(' %.0f %.0f', head[E_PLACE], now)
                head[E_ALONE], head[E_FENCE], head[E_SINCE] = alone and 1 or 0, now, now
                head[E_POLL_TTL] = head[E_EXPIRES] - now
                head[E_EXPIRES] = now + min(head[E_LEASE], CONFIRM_WINDOW)
                head[E_CONFIRMED], head[E_PASSED] = 0, FRESH
                call('HDEL', STATE, ':' .. ticket, alone and 'i' or 'a')
                call('ZREM', QUEUE, ticket)
                call('ZREM', WAITER_EXPIRY, ticket)
                call('HSET', STATE, 's', now, 'f', now + head[E_BLOCK] - 1, 'a', cmsgpack.pack(head))
                if head[E_LISTENER] ~= '' then
                    call('PUBLISH', LISTENERS .. head[E_LISTENER], wakeup)
                end
                return {'released', '1', alone and '1' or '0'}
            end
        end
    end
end
