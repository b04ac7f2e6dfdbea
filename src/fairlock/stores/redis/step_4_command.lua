-- The lock step, part 4 of 5: grant to waiters, apply the command, grant to waiters again, and build the reply.
--
-- Purpose  The same as step.py, in the same order. The subscribers of a listener are counted before a grant is made;
--          the result of PUBLISH is not used.
-- KEYS     as in step_1_read.lua
-- ARGV     1 command, in lower case · 2… its fields as in messages.py, '' = None
--          acquire  2 options · 3 entry
--          release  2 ticket · 3 leave_tombstone · 4 fence · 5 lease
--          renew    2 ticket · 3 fence · 4 weight · 5 lease
--          detach   2 ticket · 3 fence · 4 lease · 5 closed
--          evict    2 ticket · 3 by · 4 reason · 5 at_once
--          ask      2 ticket · 3 by · 4 reason
--          resize   2 capacity
--          options are the capacity as d, wait and fair as B; entry is an entry from its block on
-- Returns  nothing: step_5_write.lua returns the reply

local TOMBSTONE = 60000000

local e, reply -- reply is nil: an Acquire, whose reply is built at the end
local joined = false -- at the end of the queue
local new_holder -- a newcomer that is granted the lock past the queue
local joined_only_to_try = false -- a newcomer that does not wait: it leaves the queue unless it is granted the lock
local granted, dropped -- those that are notified: of their grant; that they were dropped
local end_changed = false -- whether a Detach has changed the end of a grant
local subscribers -- how many there are, by listener
local marked -- tickets that get a tombstone in this step: ticket -> lease
local asked -- the operator that wants the sender to release, and its reason

for round = 1, 2 do
    if round == 2 then
        e = sender ~= '' and subject and not subject.removed and subject or nil
        local is_holder = e and e.fence > 0
        local tombstone = tombstone_count > 0 and call('HGET', STATE, '#' .. TICKET)
        local _, kind, by, reason
        if tombstone then
            _, kind, by, reason = unpack_from('<dHc0Hc0Hc0', tombstone)
            if is_request(tombstone) then
                tombstone, asked = nil, {by, reason}
            end
        end

        if acquiring then
            local requested = (fixed or wanted == 0) and capacity or wanted
            if tombstone then
                reply = {'revoked', kind, by, reason}
            elseif is_holder then
                e.confirmed, e.expires, lone_changed = true, now + e.lease, true
                changed = changed or {}
                changed[sender] = e
            elseif e then
                -- it keeps its place
            elseif requested ~= capacity and (holder_count > 0 or queue_size > 0) then
                reply = {'mismatch', capacity}
            elseif weight < 1 or weight > requested then
                reply = {'mismatch', requested}
            else
                capacity = requested
                if weight ~= requested then
                    block, tail = 1, pack('<d', 1) .. sub(tail, 9)
                end
                local poll_ttl = 3 * min(CONFIRM_WINDOW / 2 * (queue_size + 1), SLEEP_CAP)
                e = {
                    ticket = sender, weight = weight, lease = lease, block = block, place = 0, since = now, fence = 0,
                    listener = unpack_from('<Hc0', tail, 27 + #sender), poll_ttl = poll_ttl, expires = now + poll_ttl,
                    confirmed = false, passed = FRESH, rest = tail,
                }
                local fits = weight <= capacity - used
                if fits and (queue_size == 0 or fair == 0) then
                    new_holder = e
                elseif waits == 0 and not fits then
                    reply = {'refused'}
                else -- one that does not wait may still overtake silent and unreachable waiters
                    joined_only_to_try = waits == 0
                    last_place, queue_size = last_place + 1, queue_size + 1
                    e.order, e.place, subject, joined = last_place, last_place, e, true
                    local head_before_it = head
                    write_waiter(e)
                    head = head_before_it
                end
            end

        elseif COMMAND == 'release' then
            local released_fence, known_lease = num(ARGV[RELEASE_FENCE]), num(ARGV[RELEASE_LEASE]) -- nil: any
            local granted_now = is_holder and e.fence > fence_before
            if is_holder and not granted_now and released_fence
                and (released_fence < e.fence or released_fence >= e.fence + e.block) then
                reply = {'released', '0'} -- the fence is not of this grant
            elseif is_holder and not granted_now and known_lease and e.lease > known_lease then
                reply = {'released', '0'} -- another client has extended the lease
            else
                reply = {'released', is_holder and not granted_now and not tombstone and '1' or '0'}
                if is_holder then
                    leaving = {e}
                elseif e then
                    quitting = {e}
                end
                if ARGV[RELEASE_LEAVE_TOMBSTONE] == '1' then
                    marked = {[sender] = lease_before}
                end
            end

        elseif COMMAND == 'renew' or COMMAND == 'detach' then
            if tombstone then
                reply = {'notholder', kind, by, reason}
            elseif not is_holder or (expected_fence and expected_fence ~= e.fence) then
                reply = {'notholder'}
            else
                local rest = e.rest or sub(e.text, E_BLOCK)
                local _, _, _, _, listener, owner, note = unpack_from('<dddHc0Hc0Hc0Hc0', rest)
                if COMMAND == 'detach' then
                    e.lease, listener = num(ARGV[DETACH_LEASE]), ''
                    if ARGV[DETACH_CLOSED] == '1' then
                        e.lease, owner = max(e.lease - (now - e.since), 1), ''
                    end
                    end_changed = e.listener ~= '' or e.expires ~= now + e.lease
                    detached = detached + (e.listener ~= '' and 1 or 0)
                else
                    used = used - e.weight
                    e.weight = max(1, min(num(ARGV[RENEW_WEIGHT]) or e.weight, e.weight)) -- it may only fall
                    used = used + e.weight
                    e.lease = max(num(ARGV[RENEW_LEASE]) or 0, e.lease) -- it may only grow
                end
                e.listener, e.rest = listener, pack(
                    '<dddHc0Hc0Hc0Hc0', e.block, e.weight, e.lease, #sender, sender, #listener, listener, #owner, owner,
                    #note, note
                )
                e.confirmed, e.expires, lone_changed = true, now + e.lease, true
                changed = changed or {}
                changed[sender] = e
                reply = {'granted', e.fence, e.lease, unpack(asked or {})}
            end

        elseif COMMAND == 'evict' then
            reply, marked, leaving, dropped = {'done'}, {}, {}, {}
            for _, evicted in ipairs(TICKET == '' and read_holders('+inf') or {subject or nil}) do
                if not evicted.removed then
                    reply[#reply + 1] = evicted.ticket
                    dropped[#dropped + 1] = evicted
                    marked[evicted.ticket] = evicted.lease
                    if evicted.fence == 0 then
                        quitting = {evicted}
                    elseif ARGV[EVICT_AT_ONCE] == '1' then
                        leaving[#leaving + 1] = evicted
                    end
                end
            end
            if TICKET ~= '' then
                marked[TICKET] = lease_before
            end

        elseif COMMAND == 'ask' then
            reply = {'done'}
            if subject and subject.fence > 0 and not subject.removed and not tombstone then
                reply[2], dropped, marked = TICKET, {subject}, {[TICKET] = 0}
            end

        else -- resize
            capacity, fixed = num(ARGV[RESIZE_CAPACITY]) or capacity, ARGV[RESIZE_CAPACITY] ~= ''
            reply, quitting, dropped = {'done'}, {}, {}
            for _, text in ipairs(queue_size > 0 and call('ZRANGE', QUEUE, 0, queue_size - 1) or {}) do
                local waiter = decode(text)
                if waiter.weight > capacity then
                    reply[#reply + 1] = waiter.ticket
                    dropped[#dropped + 1] = waiter
                    quitting[#quitting + 1] = waiter
                end
            end
        end

        if marked then
            kind, by, reason = 'left', '', ''
            if COMMAND == 'evict' then
                kind, by, reason = 'evicted', ARGV[EVICT_BY], ARGV[EVICT_REASON]
            elseif COMMAND == 'ask' then
                kind, by, reason = 'asked', ARGV[ASK_BY], ARGV[ASK_REASON]
            end
            for ticket, marked_lease in pairs(marked) do
                local before = tombstone_count > 0 and call('HGET', STATE, '#' .. ticket)
                if not before or is_request(before) then
                    local span, till = FOREVER, FOREVER
                    if kind ~= 'asked' then
                        span = max(TOMBSTONE, marked_lease)
                        till, latest = now + span, max(latest, now + span)
                    end
                    tombstone_count = tombstone_count + call('ZADD', TOMBSTONES, till, ticket)
                    local text = pack('<dHc0Hc0Hc0', span, #kind, kind, #by, by, #reason, reason)
                    call('HSET', STATE, '#' .. ticket, text)
                end
            end
        end
    end

    -- Remove those that leave.

    for i = 1, leaving and #leaving or 0 do
        local holder = leaving[i]
        holder.removed = true
        holder_count, used = holder_count - 1, used - holder.weight
        detached = detached - (holder.listener == '' and 1 or 0)
        if several then
            call('ZREM', HOLDERS, holder.ticket)
            call('ZREM', UNCONFIRMED, holder.ticket)
            call('HDEL', STATE, ':' .. holder.ticket)
            known, changed, removed = known or {}, changed or {}, true
            known[holder.ticket], changed[holder.ticket] = nil, nil
            holders_ttl = holders_ttl or holder_count == 0
        else
            lone = nil
        end
        if is_request and is_request(call('HGET', STATE, '#' .. holder.ticket)) then
            tombstone_count = tombstone_count - call('ZREM', TOMBSTONES, holder.ticket)
            call('HDEL', STATE, '#' .. holder.ticket)
        end
    end
    for i = 1, quitting and #quitting or 0 do
        local waiter = quitting[i]
        call('ZREM', QUEUE, waiter.text, 't' .. waiter.ticket, 'x' .. waiter.ticket)
        waiter.removed = true
        queue_size, removed, head = queue_size - 1, true, false
        queue_ttl = queue_ttl or queue_size == 0
    end
    leaving, quitting = nil, nil

    -- Grant to the head of the queue while it fits. Unreachable and silent waiters are passed over and keep their
    -- places; if there are only unreachable ones, the first of them gets its turn. At full capacity only expired
    -- waiters are searched for.

    while new_holder or (queue_size > 0 and (used < capacity or more_expired)) do
        local turn, following, unreachable = new_holder, false, nil
        local fallback, i = nil, 0
        while not turn and i < queue_size do
            local text, second = unpack(i == 0 and call('ZRANGE', QUEUE, '0', '1') or call('ZRANGE', QUEUE, i, i + 1))
            if not text or sub(text, 1, 1) ~= '0' then
                queue_size = i -- the server has evicted the queue
                break
            end
            local w = decode(text)
            local listener = w.listener
            w = subject and subject.ticket == w.ticket and subject or w
            if w.expires <= now then
                call('ZREM', QUEUE, w.text, 't' .. w.ticket, 'x' .. w.ticket)
                queue_size, removed, head, w.removed = queue_size - 1, true, false, true
                queue_ttl = queue_ttl or queue_size == 0
            elseif w.passed == SILENT then
                i = i + 1
            else
                if listener ~= '' and w.passed ~= POLLED and not (acquiring and w.ticket == sender) then
                    subscribers = subscribers or {}
                    subscribers[listener] = subscribers[listener]
                        or call('PUBSUB', 'NUMSUB', LISTENERS .. listener)[2]
                    if subscribers[listener] == 0 then
                        fallback, unreachable, i = fallback or w, unreachable or {}, i + 1
                        unreachable[#unreachable + 1] = w
                        w = nil
                    end
                end
                turn, following = w, i == 0 and second
            end
        end
        if not turn then
            turn, unreachable = fallback, nil
        end
        if not turn or turn.weight > capacity - used then
            break
        end
        for n = 1, unreachable and #unreachable or 0 do
            local w = unreachable[n]
            if w.passed == FRESH then
                local order, text = call('ZSCORE', QUEUE, w.text), w.text
                call('ZREM', QUEUE, text)
                w.text = sub(text, 1, E_PASSED - 1) .. pack('B', PASSED) .. sub(text, E_PASSED + 1)
                w.passed, removed = PASSED, true
                call('ZADD', QUEUE, order, w.text)
            end
        end
        if new_holder then
            new_holder = nil
        else
            call('ZREM', QUEUE, turn.text, 't' .. turn.ticket, 'x' .. turn.ticket)
            queue_size, removed, head = queue_size - 1, true, following
            queue_ttl = queue_ttl or queue_size == 0
        end
        local confirmed = acquiring and turn.ticket == sender
        local first = max(fence + 1, now)
        fence = first + turn.block - 1
        turn.poll_ttl = max(turn.expires - now, 0)
        turn.fence, turn.confirmed, turn.since, turn.passed, turn.removed = first, confirmed, now, FRESH, false
        turn.expires = now + (confirmed and turn.lease or min(turn.lease, CONFIRM_WINDOW))
        holder_count, used = holder_count + 1, used + turn.weight
        detached = detached + (turn.listener == '' and 1 or 0)
        if not confirmed then
            granted = granted or {}
            granted[#granted + 1] = turn
        end
        if lone or several then
            known, changed = known or {}, changed or {}
            if lone then
                known[lone.ticket], changed[lone.ticket] = lone, lone
                lone, several = nil, true
            end
            known[turn.ticket], changed[turn.ticket] = turn, turn
        else
            lone, lone_changed = turn, true
        end
    end

    if several and changed then
        for ticket, holder in pairs(changed) do
            call('ZADD', HOLDERS, holder.expires, ticket)
            if holder.confirmed then
                call('ZREM', UNCONFIRMED, ticket)
            else
                call('ZADD', UNCONFIRMED, holder.expires, ticket)
            end
        end
    end
end

-- The reply to an Acquire.

if not reply and e.fence > 0 then
    reply = {'granted', e.fence, e.expires - now, unpack(asked or {})}
elseif not reply and joined_only_to_try then
    call('ZREM', QUEUE, e.text, 't' .. sender, 'x' .. sender)
    queue_size, last_place = queue_size - 1, last_place - 1
    reply = {'refused'}
elseif not reply then
    local position = joined and queue_size - 1 or call('ZRANK', QUEUE, e.text)
    if e.poll_ttl ~= 3 * min(CONFIRM_WINDOW / 2 * (position + 1), SLEEP_CAP) then
        refresh_waiter(e, position) -- it must fit the position in the reply, not the one before the step
    end
    local retry_at -- when those directly ahead expire, or an unconfirmed grant does
    if position > 0 then
        if head ~= nil then
            head = head or call('ZRANGE', QUEUE, 0, 0)[1]
            head_expires = unpack_from('<d', head, E_EXPIRES)
        end
        retry_at = head_expires
        if several then
            retry_at = min(retry_at, num(call('ZRANGE', UNCONFIRMED, 0, 0, 'WITHSCORES')[2]) or retry_at)
        elseif lone and not lone.confirmed then
            retry_at = min(retry_at, lone.expires)
        end
    else
        head = e.text
        retry_at = lone and lone.expires or several and num(call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')[2]) or now
    end
    local retry_in = retry_at - now
    if e.lease < CONFIRM_WINDOW then
        retry_in = min(retry_in, math.floor(e.lease / 2) * (position + 1))
    end
    reply = {'queued', position, e.place, max(retry_in, 1)}
end
