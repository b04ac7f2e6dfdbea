-- The pool step, part 2 of 4: adjust to the clock, sweep; functions that hand items to waiters.
--
-- Purpose  The same as queue.py and step.py, in the same order. These know which clients are dead; Redis does not. Here
--          a dead client is only unreachable, and later silent, and an item that was handed to it is due again after
--          CONFIRM_WINDOW. The subscribers of a listener are counted before an item is handed over.
-- KEYS     as in pool_step_1_read.lua
-- ARGV     as in pool_step_3_command.lua
-- Returns  nothing: pool_step_4_write.lua returns the reply

local function sleep_at(position)
    return min(CONFIRM_WINDOW / 2 * (position + 1), SLEEP_CAP)
end

local function read_waiter(ticket)
    local packed = saved_waiter
    if ticket ~= sender then
        packed = call('HGET', ITEMS, '>' .. ticket)
    end
    if not packed then
        return nil
    end
    local lease, listener, owner, note, place, since, poll_ttl, key = unpack(cmsgpack.unpack(packed))
    return {
        ticket = ticket, lease = lease, listener = listener, owner = owner, note = note, place = place, since = since,
        poll_ttl = poll_ttl, key = key,
    }
end

local function save_waiter(w, position) -- a waiter that is new or polls
    w.poll_ttl = 3 * sleep_at(position)
    call('ZADD', WAITER_EXPIRY, to_text(now + w.poll_ttl), w.ticket)
    call('HSET', ITEMS, '>' .. w.ticket, cmsgpack.pack({
        w.lease, w.listener, w.owner, w.note, w.place, w.since, w.poll_ttl, w.key,
    }))
end

local function remove_waiter(ticket, w)
    w = w or read_waiter(ticket)
    if call('ZREM', WAITER_EXPIRY, ticket) == 0 and not w then
        return
    end
    call('ZREM', QUEUE, ticket)
    if w and w.key ~= '' then
        watcher_count = watcher_count - call('ZREM', WATCHERS, w.key .. '\0' .. ticket)
    end
    call('HDEL', ITEMS, '>' .. ticket)
    if ticket == sender then
        saved_waiter = nil
    end
end

local function take(item, w, till)
    item.fence = max(item.fence + 1, now)
    item.score, item.ticket, item.lease, item.owner, item.note = till, w.ticket, w.lease, w.owner, w.note
    save_item(item)
end

local none_due = false -- nothing is due any more: to take an item makes no other one due

local function first_due()
    while not none_due do
        local key, score = unpack(call('ZRANGEBYSCORE', DUE, '0', NOW, 'WITHSCORES', 'LIMIT', 0, 1))
        local item = key and read_item(key, score)
        if item then
            return item
        elseif key then
            call('ZREM', DUE, key) -- its fields were evicted
        else
            none_due = seeking
            return nil
        end
    end
end

local handed, taken = {}, nil -- the wake-ups of waiters that were handed an item; the item of the sender

local subscribers = {} -- how many there are, by listener

local function is_unreachable(w)
    local listener = w.listener
    if listener == '' or w.ticket == sender then
        return false
    end
    subscribers[listener] = subscribers[listener] or call('PUBSUB', 'NUMSUB', LISTENERS .. listener)[2]
    return subscribers[listener] == 0
end

-- Hand due items to the waiters in the queue, for CONFIRM_WINDOW each. An unreachable waiter is passed over and keeps
-- its place; it is handed an item only if one is left when all others have theirs.
local function hand_over(reachable_only)
    local item, skipped, to_all = queued and first_due(), 0, false
    while item do
        local ticket = call('ZRANGE', QUEUE, skipped, skipped)[1]
        local w = ticket and read_waiter(ticket)
        if not ticket and (reachable_only or to_all) then
            return
        elseif not ticket then
            skipped, to_all = 0, true
        elseif w and not to_all and is_unreachable(w) then
            skipped = skipped + 1
        else
            remove_waiter(ticket, w)
            if w and ticket == sender then
                take(item, w, now + max(min(CONFIRM_WINDOW, w.lease), num(ARGV[SEEK_LEASE])))
                taken = item
            elseif w then
                take(item, w, now + min(CONFIRM_WINDOW, w.lease))
                handed[#handed + 1] = {listener = w.listener, ticket = ticket, fence = item.fence}
            end
            item = w and first_due() or (not w and item)
        end
    end
end

-- If the clock has gone back, no item is due later than its own span from now, and no poll_ttl ends later.

if now < seen then
    for _, key in ipairs(call('ZRANGEBYSCORE', DUE, '(' .. NOW, '+inf')) do
        local item = read_item(key)
        if item and item.score > now + item.lease then
            call('ZADD', DUE, to_text(now + item.lease), key)
        end
    end
    local ends = in_use ~= '' and call('ZRANGEBYSCORE', WAITER_EXPIRY, '(' .. NOW, '+inf', 'WITHSCORES') or {}
    for n = 1, #ends, 2 do
        local ticket, expires = ends[n], num(ends[n + 1])
        local w = read_waiter(ticket)
        if w and expires > now + w.poll_ttl then
            call('ZADD', WAITER_EXPIRY, to_text(now + w.poll_ttl), ticket)
        end
    end
end

-- Sweep the waiters that have not polled in time. The sender is alive.

if in_use ~= '' then
    for _, ticket in ipairs(call('ZRANGEBYSCORE', WAITER_EXPIRY, '-inf', NOW)) do
        if ticket ~= sender then
            remove_waiter(ticket)
        end
    end
end
