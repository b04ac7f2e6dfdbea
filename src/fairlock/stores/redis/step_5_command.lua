-- The lock step, part 5 of 6: apply the command, grant to waiters for the second time, and build the reply.
--
-- Purpose  The same as step.py, in the same order.
-- KEYS     as in step_1_read.lua
-- ARGV     1 prefix of the listeners' channels · 2 command, in lower case · 3… its fields as in messages.py, '' = None
--          acquire  3 ticket · 4 capacity · 5 weight · 6 lease · 7 wait · 8 fair · 9 block · 10 listener · 11 owner
--                   · 12 note
--          release  3 ticket · 4 leave_tombstone · 5 fence · 6 lease
--          renew    3 ticket · 4 fence · 5 weight · 6 lease
--          detach   3 ticket · 4 fence · 5 lease · 6 closed
--          evict    3 ticket · 4 by · 5 reason · 6 at_once
--          resize   3 capacity
-- Returns  nothing: step_6_write.lua returns the reply

local TOMBSTONE = 60000000

local function add_tombstone(ticket, lease, kind, by, reason)
    if not read_tombstone(ticket) then
        local span = max(TOMBSTONE, lease)
        tombstone_count = tombstone_count + 1
        latest = max(latest, now + span)
        call('HSET', STATE, '#' .. ticket, cmsgpack.pack({span, kind, by, reason}))
        add_to(TOMBSTONES, now + span, ticket)
    end
end

local e = read_entry(sender)
local is_holder = e and e.fence > 0
local joined = false
local reply -- nil: an Acquire whose reply is built after the second grant_to_waiters
local dropped = {}
local end_changed = false -- whether a Detach has changed the end of a grant

if acquiring then
    local requested, weight = num(ARGV[ACQUIRE_CAPACITY]), num(ARGV[ACQUIRE_WEIGHT])
    requested = (fixed or requested == 0) and capacity or requested
    local has_tombstone, kind, by, reason = read_tombstone(sender)
    if has_tombstone then
        reply = {'revoked', kind, by, reason}
    elseif is_holder then
        e.confirmed = true
        e.expires = now + e.lease
        save_holder(e)
    elseif e then
        -- it keeps its place
    elseif requested ~= capacity and (holder_count > 0 or queue_size > 0) then
        reply = {'mismatch', to_text(capacity)}
    elseif weight < 1 or weight > requested then
        reply = {'mismatch', to_text(requested)}
    else
        capacity = requested
        local poll_ttl = poll_ttl_at(queue_size)
        e = {
            ticket = sender, weight = weight, lease = num(ARGV[ACQUIRE_LEASE]), listener = ARGV[ACQUIRE_LISTENER],
            owner = ARGV[ACQUIRE_OWNER], note = ARGV[ACQUIRE_NOTE],
            block = weight == requested and max(num(ARGV[ACQUIRE_BLOCK]), 1) or 1,
            place = 0, since = now, fence = 0, confirmed = false, poll_ttl = poll_ttl, expires = now + poll_ttl,
            passed = FRESH,
        }
        local fits = weight <= capacity - used
        local joins = ARGV[ACQUIRE_WAIT] == '1'
        if fits and (queue_size == 0 or ARGV[ACQUIRE_FAIR] == '0') then
            grant(e)
        else
            if fits and not joins then -- without waiting it may still overtake silent and unreachable waiters
                local first = find_next_waiter()
                joins = not first or is_unreachable(first)
            end
            if joins then
                last_place = last_place + 1
                e.place = last_place
                add_to(QUEUE, last_place, sender)
                queue_size = queue_size + 1
                joined = true
                save_waiter(e)
            else
                reply = {'refused'}
            end
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
        local held = is_holder and not granted_now and not read_tombstone(sender)
        if is_holder then
            remove_holder(e)
        elseif e then
            remove_waiter(sender)
        end
        if ARGV[RELEASE_LEAVE_TOMBSTONE] == '1' then
            add_tombstone(sender, lease_before, 'left', '', '')
        end
        reply = {'released', held and '1' or '0'}
    end

elseif COMMAND == 'renew' or COMMAND == 'detach' then
    local has_tombstone, kind, by, reason = read_tombstone(sender)
    if has_tombstone then
        reply = {'notholder', kind, by, reason}
    elseif not is_holder or (expected_fence and expected_fence ~= e.fence) then
        reply = {'notholder'}
    else
        if COMMAND == 'detach' then
            local lease = num(ARGV[DETACH_LEASE])
            end_changed = e.listener ~= '' or e.expires ~= now + lease
            detached = detached + (e.listener ~= '' and 1 or 0)
            e.lease, e.listener, e.owner = lease, '', ARGV[DETACH_CLOSED] == '1' and '' or e.owner
        else
            used = used - e.weight
            e.weight = max(1, min(num(ARGV[RENEW_WEIGHT]) or e.weight, e.weight)) -- it may only fall
            used = used + e.weight
            e.lease = max(num(ARGV[RENEW_LEASE]) or 0, e.lease) -- it may only grow
        end
        e.confirmed = true
        e.expires = now + e.lease
        save_holder(e)
        reply = {'granted', to_text(e.fence), to_text(e.lease)}
    end

elseif COMMAND == 'evict' then
    reply = {'done'}
    for _, evicted in ipairs(TICKET == '' and read_holders('+inf') or {read_entry(TICKET) or nil}) do
        reply[#reply + 1] = evicted.ticket
        dropped[#dropped + 1] = evicted
        if evicted.fence == 0 then
            remove_waiter(evicted.ticket)
        elseif ARGV[EVICT_AT_ONCE] == '1' then
            remove_holder(evicted)
        end
        add_tombstone(evicted.ticket, evicted.lease, 'evicted', ARGV[EVICT_BY], ARGV[EVICT_REASON])
    end
    if TICKET ~= '' then
        add_tombstone(TICKET, lease_before, 'evicted', ARGV[EVICT_BY], ARGV[EVICT_REASON])
    end

else -- resize
    capacity, fixed = num(ARGV[RESIZE_CAPACITY]) or capacity, ARGV[RESIZE_CAPACITY] ~= ''
    reply = {'done'}
    for _, ticket in ipairs(queue_size > 0 and call('ZRANGE', QUEUE, 0, -1) or {}) do
        local waiter = read_entry(ticket)
        if waiter.weight > capacity then
            reply[#reply + 1] = ticket
            dropped[#dropped + 1] = waiter
            remove_waiter(ticket)
        end
    end
end

grant_to_waiters()

-- The reply to an Acquire.

if not reply and e.fence > 0 then
    reply = {'granted', to_text(e.fence), to_text(e.expires - now)}
elseif not reply then
    local position = joined and queue_size - 1 or call('ZRANK', QUEUE, sender)
    if e.poll_ttl ~= poll_ttl_at(position) then -- it must fit the position in the reply, not the one before the step
        refresh_waiter(e, position)
    end
    local retry_at -- when those directly ahead expire, or an unconfirmed grant does
    if position > 0 then
        retry_at = read_entry(call('ZRANGE', QUEUE, 0, 0)[1]).expires
        if several then
            retry_at = min(retry_at, num(call('ZRANGE', UNCONFIRMED, 0, 0, 'WITHSCORES')[2]) or retry_at)
        elseif lone and not lone.confirmed then
            retry_at = min(retry_at, lone.expires)
        end
    else
        retry_at = lone and lone.expires or several and num(call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')[2]) or now
    end
    local retry_in = retry_at - now
    if e.lease < CONFIRM_WINDOW then
        retry_in = min(retry_in, math.floor(e.lease / 2) * (position + 1))
    end
    reply = {'queued', to_text(position), to_text(e.place), to_text(max(retry_in, 1))}
end
