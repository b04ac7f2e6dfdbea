-- The lock step, part 3 of 5: adjust to the clock, refresh the sender, and sweep.
--
-- Purpose  The same as step.py, in the same order. step.py knows which clients are dead; Redis does not. Here a dead
--          client is only unreachable, and later silent.
-- KEYS     as in step_1_read.lua
-- ARGV     as in step_4_command.lua
-- Returns  nothing: step_5_write.lua returns the reply

local sender = (COMMAND == 'evict' or COMMAND == 'ask' or COMMAND == 'resize') and '' or TICKET
local fence_before = fence
local expected_fence -- nil: any
if COMMAND == 'renew' then
    expected_fence = num(ARGV[RENEW_FENCE])
elseif COMMAND == 'detach' then
    expected_fence = num(ARGV[DETACH_FENCE])
end

-- If the clock has gone back, nothing may last longer than its own span from now.

if now < seen then
    changed = {}
    for _, e in ipairs(several and read_holders('+inf') or {lone or nil}) do
        e.expires = min(e.expires, now + (e.confirmed and e.lease or min(e.lease, CONFIRM_WINDOW)))
        e.since, lone_changed = min(e.since, now), true
        if several then
            changed[e.ticket] = e
        end
    end
    for i = 0, queue_size - 1 do
        local text, order = unpack(call('ZRANGE', QUEUE, i, i, 'WITHSCORES'))
        local e = text and decode(text) or {}
        e = subject and subject.ticket == e.ticket and subject or e
        if text then
            e.order, e.expires, e.since = order, min(e.expires, now + e.poll_ttl), min(e.since, now)
            write_waiter(e)
        end
    end
    local tombstones = tombstone_count > 0 and call('ZRANGE', TOMBSTONES, 0, -1, 'WITHSCORES') or {}
    for i = 1, #tombstones, 2 do
        local ticket, till = tombstones[i], num(tombstones[i + 1])
        local span = unpack_from('<d', call('HGET', STATE, '#' .. ticket))
        call('ZADD', TOMBSTONES, min(till, now + span), ticket)
    end
end

-- A waiter that polls is alive: refresh it before the sweep.

if acquiring and subject and subject.fence == 0 then
    refresh_waiter(subject, call('ZRANK', QUEUE, subject.text))
end

-- Sweep: a bounded number of waiters, then holders, then tombstones.

local leaving, quitting -- holders and waiters that step_4_command.lua removes
local more_expired = false -- whether expired waiters may be left behind the head of the queue
if queue_size > 0 and earliest <= now then
    local expired = call('ZRANGEBYSCORE', QUEUE, EXPIRIES, EXPIRIES + now, 'LIMIT', 0, SWEEP)
    quitting = {}
    for i, name in ipairs(expired) do
        local ticket = sub(name, 2)
        quitting[i] = subject and subject.ticket == ticket and subject or find_waiter(ticket)
    end
    more_expired = #expired == SWEEP
    local _, following = unpack(
        call('ZRANGEBYSCORE', QUEUE, EXPIRIES, '+inf', 'WITHSCORES', 'LIMIT', #expired, 1)
    )
    earliest = following and following - EXPIRIES or FOREVER
    queue_size = (following or #expired > 0) and queue_size or 0 -- or the server has evicted the queue
end

if several or (lone and lone.expires <= now) then
    local expired = several and read_holders(now) or {lone}
    local contended = #expired > 0 and queue_size > 0
        and call('ZCOUNT', QUEUE, format('(%d', EXPIRIES + now), '+inf') > 0
    local returning = {}
    leaving = {}
    for _, e in ipairs(expired) do
        local renews = e.ticket == sender and COMMAND ~= 'release' and (not expected_fence or expected_fence == e.fence)
        local has_tombstone = tombstone_count > 0 and call('HGET', STATE, '#' .. e.ticket)
        has_tombstone = has_tombstone and not is_request(has_tombstone)
        if not has_tombstone and not contended and renews then
            -- it stays: its lease has ended, but no other client wants the lock
        else
            leaving[#leaving + 1] = e
            if not has_tombstone and not e.confirmed and e.since + e.poll_ttl > now and e.weight <= capacity then
                returning[#returning + 1] = e
            end
        end
    end
    local first = queue_size > 0 and #returning > 0 and call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES')[2] or 0
    for i, e in ipairs(returning) do -- not confirmed in time, but its poll_ttl still runs: to the head of the queue
        last_place = last_place + 1
        local back = decode(encode(e, '0'))
        back.place, back.expires, back.since = last_place, e.since + e.poll_ttl, now
        back.poll_ttl, back.fence, back.passed = back.expires - now, 0, SILENT
        back.order, back.rest, back.text = first - #returning + i - 1, sub(back.text, E_BLOCK), nil
        queue_size = queue_size + 1
        if subject == e then
            subject = back
        end
        if acquiring and e.ticket == sender then
            refresh_waiter(back, 0)
        else
            write_waiter(back)
        end
    end
end

if tombstone_count > 0 then
    for _, ticket in ipairs(call('ZRANGEBYSCORE', TOMBSTONES, '-inf', now)) do
        tombstone_count = tombstone_count - call('ZREM', TOMBSTONES, ticket)
        call('HDEL', STATE, '#' .. ticket)
    end
end
