-- The lock step, part 4 of 6: adjust to the clock, refresh the sender, sweep, and grant to waiters for the first time.
--
-- Purpose  The same as step.py, in the same order. step.py knows which clients are dead; Redis does not. Here a dead
--          client is only unreachable, and later silent. The subscribers of a listener are counted before a grant is
--          made; the result of PUBLISH is not used.
-- KEYS     as in step_1_read.lua
-- ARGV     as in step_5_command.lua
-- Returns  nothing: step_6_write.lua returns the reply

local acquiring = COMMAND == 'acquire'
local sender = (COMMAND == 'evict' or COMMAND == 'resize') and '' or TICKET
local fence_before = fence
local expected_fence -- nil: any
if COMMAND == 'renew' then
    expected_fence = num(ARGV[RENEW_FENCE])
elseif COMMAND == 'detach' then
    expected_fence = num(ARGV[DETACH_FENCE])
end

local function poll_ttl_at(position)
    return 3 * min(CONFIRM_WINDOW / 2 * (position + 1), SLEEP_CAP)
end

local function read_tombstone(ticket) -- its span, kind, by and reason; nothing if there is none
    local packed = tombstone_count > 0 and call('HGET', STATE, '#' .. ticket)
    if packed then
        return unpack(cmsgpack.unpack(packed))
    end
end

local function refresh_waiter(e, position)
    e.poll_ttl = poll_ttl_at(position)
    e.expires = now + e.poll_ttl
    if e.passed == PASSED or e.passed == SILENT then
        e.passed = HEARD
    end
    save_waiter(e)
end

-- If the clock has gone back, nothing may last longer than its own span from now.

if now < seen then
    for _, e in ipairs(read_holders('+inf')) do
        e.expires = min(e.expires, now + (e.confirmed and e.lease or min(e.lease, CONFIRM_WINDOW)))
        e.since = min(e.since, now)
        save_holder(e)
    end
    for _, ticket in ipairs(queue_size > 0 and call('ZRANGE', QUEUE, 0, -1) or {}) do
        local e = read_entry(ticket)
        e.expires = min(e.expires, now + e.poll_ttl)
        e.since = min(e.since, now)
        save_waiter(e)
    end
    local tombstones = tombstone_count > 0 and call('ZRANGE', TOMBSTONES, 0, -1, 'WITHSCORES') or {}
    for i = 1, #tombstones, 2 do
        local ticket, till = tombstones[i], num(tombstones[i + 1])
        local span = read_tombstone(ticket)
        add_to(TOMBSTONES, min(till, now + span), ticket)
    end
end

-- A waiter that polls is alive: refresh it before the sweep.

if acquiring and ahead then
    refresh_waiter(subject, ahead)
end

-- Sweep: a bounded number of waiters, then holders, then tombstones.

local more_expired = false -- whether expired waiters may be left behind the head of the queue
if queue_size > 0 then
    local expired = call('ZRANGEBYSCORE', WAITER_EXPIRY, '-inf', NOW, 'LIMIT', 0, SWEEP)
    for _, ticket in ipairs(expired) do
        remove_waiter(ticket)
    end
    more_expired = #expired == SWEEP
end

local expired_holders = read_holders(NOW)
if #expired_holders > 0 then
    local contended = queue_size > 0 and call('ZCOUNT', WAITER_EXPIRY, '(' .. NOW, '+inf') > 0
    local returning = {}
    for _, e in ipairs(expired_holders) do
        local renews = e.ticket == sender and COMMAND ~= 'release' and (not expected_fence or expected_fence == e.fence)
        local has_tombstone = read_tombstone(e.ticket)
        if not has_tombstone and not contended and renews then
            -- it stays: its lease has ended, but no other client wants the lock
        elseif not has_tombstone and not e.confirmed and e.since + e.poll_ttl > now and e.weight <= capacity then
            returning[#returning + 1] = e
        else
            remove_holder(e)
        end
    end
    local head = queue_size > 0 and #returning > 0 and num(call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES')[2]) or 0
    for i, e in ipairs(returning) do -- not confirmed in time, but its poll_ttl still runs: to the head of the queue
        remove_holder(e)
        last_place = last_place + 1
        e.place, e.expires, e.poll_ttl, e.since = last_place, e.since + e.poll_ttl, e.since + e.poll_ttl - now, now
        e.fence, e.passed = 0, SILENT
        add_to(QUEUE, head - #returning + i - 1, e.ticket)
        queue_size = queue_size + 1
        if acquiring and e.ticket == sender then
            refresh_waiter(e, 0)
        else
            save_waiter(e)
        end
    end
end

if tombstone_count > 0 then
    for _, ticket in ipairs(call('ZRANGEBYSCORE', TOMBSTONES, '-inf', NOW)) do
        tombstone_count = tombstone_count - call('ZREM', TOMBSTONES, ticket)
        call('HDEL', STATE, '#' .. ticket)
    end
end

-- Grant to the head of the queue while it fits.

local subscribers = {} -- how many there are, by listener

local function is_unreachable(e)
    if e.listener == '' or e.passed == HEARD or (acquiring and e.ticket == sender) then
        return false
    end
    subscribers[e.listener] = subscribers[e.listener] or count_subscribers(e.listener)
    return subscribers[e.listener] == 0
end

-- Returns the waiter whose turn it is, and the unreachable waiters before it. Removes expired waiters on the way.
local function find_next_waiter()
    local fallback, unreachable, i = nil, {}, 0
    while true do
        local ticket = call('ZRANGE', QUEUE, i, i)[1]
        if not ticket then
            return fallback, {}
        end
        local e = read_entry(ticket)
        if e.expires <= now then
            remove_waiter(ticket)
        elseif e.passed == SILENT then
            i = i + 1
        elseif is_unreachable(e) then
            fallback = fallback or e
            unreachable[#unreachable + 1] = e
            i = i + 1
        else
            return e, unreachable
        end
    end
end

local granted = {}

local function grant(e)
    local confirmed = acquiring and e.ticket == sender
    local first = max(fence + 1, now)
    fence = first + e.block - 1
    e.poll_ttl = max(e.expires - now, 0)
    e.fence, e.confirmed, e.since, e.passed, e.removed = first, confirmed, now, FRESH, false
    e.expires = now + (confirmed and e.lease or min(e.lease, CONFIRM_WINDOW))
    holder_count = holder_count + 1
    used = used + e.weight
    detached = detached + (e.listener == '' and 1 or 0)
    save_holder(e)
    if not confirmed then
        granted[#granted + 1] = e
    end
end

local function grant_to_waiters()
    while queue_size > 0 and (used < capacity or more_expired) do -- at full capacity only expired waiters are searched
        local e, unreachable = find_next_waiter()
        if not e or e.weight > capacity - used then
            return
        end
        for _, passed_over in ipairs(unreachable) do
            if passed_over.passed == FRESH then
                passed_over.passed = PASSED
                save(passed_over)
            end
        end
        remove_waiter(e.ticket)
        grant(e)
    end
end

grant_to_waiters()
