-- The pool step, part 3 of 4: apply the order.
--
-- Purpose  The same as step.py.
-- KEYS     as in pool_step_1_read.lua
-- ARGV     1 prefix of the listeners' channels · 2 order · 3… its fields as in messages.py; an empty body: unchanged
--          put     3 first · 4 key · 5 body · and so on, two for each item
--          touch   3 key · 4 ticket · 5 fence · 6 body · 7 lease
--          give    3 key · 4 ticket · 5 fence · 6 after · 7 body
--          finish  3 key · 4 ticket · 5 fence · 6 body
--          remove  3 key · 4 ticket · 5 fence · 6 force
--          look    3 key
--          seek    3 ticket · 4 lease · 5 wait · 6 listener · 7 owner · 8 note · 9 key
--          quit    3 ticket · 4 lease · 5 key
-- Returns  nothing: pool_step_4_write.lua returns the reply

local reply
local changed = {} -- keys of items that are new, have become free, or were removed
local given_back = false -- an item may be due sooner than the head of the queue knows

local function refresh(item) -- the sender has it already
    item.score = max(item.score, now + num(ARGV[SEEK_LEASE]))
    call('ZADD', DUE, to_text(item.score), item.key)
    taken = item
end

local function take_for_sender(item)
    local lease = num(ARGV[SEEK_LEASE])
    take(item, {ticket = sender, lease = lease, owner = ARGV[SEEK_OWNER], note = ARGV[SEEK_NOTE]}, now + lease)
    taken = item
end

local function new_waiter(key)
    last_place = last_place + 1
    return {
        ticket = sender, lease = num(ARGV[SEEK_LEASE]), listener = ARGV[SEEK_LISTENER], owner = ARGV[SEEK_OWNER],
        note = ARGV[SEEK_NOTE], place = last_place, since = now, key = key,
    }
end

if ORDER == 'put' then
    local count = 0
    was_empty = call('ZCARD', DUE) == 0
    for n = PUT_FIRST_ROW, #ARGV - 1, 2 do
        local key, body = ARGV[n], ARGV[n + 1]
        if not read_item(key) then
            save_item({
                key = key, score = max(now - AGO, 0) + num(SUBJECT) + count, fence = 0, lease = 0, ticket = '',
                saved_ticket = '', owner = '', note = '', body = body,
            })
            count = count + 1
            changed[count] = key
        end
    end
    has_item = has_item or count > 0
    reply = {'added', count}

elseif ORDER == 'quit' then
    remove_waiter(sender)
    local item = own_key and read_item(own_key)
    if item and item.ticket == sender then
        item.score, item.ticket, item.lease, item.owner, item.note = now, '', 0, '', ''
        save_item(item)
        changed[1] = item.key
    end
    reply = {'revoked'}

elseif seeking and ARGV[SEEK_KEY] ~= '' then
    local item = read_item(ARGV[SEEK_KEY])
    if not item then
        reply = {'absent'}
    elseif item.score == DONE then
        reply = {'finished'}
    elseif item.ticket == sender then
        refresh(item)
    elseif item.score > now then
        reply = {'busy', to_text(item.score - now)}
    else
        take_for_sender(item)
    end
    if taken or ARGV[SEEK_WAIT] ~= '1' or reply[1] == 'finished' then
        remove_waiter(sender)
    else
        local w = read_waiter(sender)
        if not w then
            w = new_waiter(ARGV[SEEK_KEY])
            watcher_count = watcher_count + call('ZADD', WATCHERS, 0, w.key .. '\0' .. sender)
        end
        save_waiter(w, 0)
    end

elseif seeking then
    local item = own_key and read_item(own_key)
    local in_queue = saved_waiter and call('ZSCORE', QUEUE, sender)
    if item and item.ticket == sender then
        refresh(item)
        remove_waiter(sender)
    else
        hand_over(true)
        item = not in_queue and first_due()
        if item then
            take_for_sender(item)
        end
    end
    if taken then
        -- the reply is built below
    elseif ARGV[SEEK_WAIT] ~= '1' and not in_queue then
        reply = {'nothing'}
    else
        local w = in_queue and read_waiter(sender)
        if not w then
            w = new_waiter('')
            call('ZADD', QUEUE, to_text(w.place), sender)
            queued = true
        end
        local ahead = call('ZRANK', QUEUE, sender)
        save_waiter(w, ahead)
        local retry = sleep_at(ahead)
        local next_due = ahead == 0 and call('ZRANGEBYSCORE', DUE, '(' .. NOW, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
        reply = {'queued', ahead, to_text(w.place), to_text(next_due and min(retry, next_due - now) or retry)}
    end

elseif ORDER == 'look' then
    local item = read_item(SUBJECT)
    reply = {'looked'}
    if item then
        reply = {
            'looked', to_text(item.score), to_text(item.fence), item.ticket, to_text(item.lease), item.owner, item.note,
            item.body,
        }
    end

else
    local ticket_at, fence_at, body_at = TOUCH_TICKET, TOUCH_FENCE, TOUCH_BODY
    if ORDER == 'give' then
        ticket_at, fence_at, body_at = GIVE_TICKET, GIVE_FENCE, GIVE_BODY
    elseif ORDER == 'finish' then
        ticket_at, fence_at, body_at = FINISH_TICKET, FINISH_FENCE, FINISH_BODY
    elseif ORDER == 'remove' then
        ticket_at, fence_at = REMOVE_TICKET, REMOVE_FENCE
    end
    local item = read_item(SUBJECT)
    local same = item and item.fence == num(ARGV[fence_at])
    local owns = same and item.ticket == ARGV[ticket_at]
    local ticket_before = item and item.ticket
    if ORDER == 'remove' then
        if item and item.ticket ~= '' and item.score > now and not owns and ARGV[REMOVE_FORCE] ~= '1' then
            reply = {'busy', to_text(item.score - now)}
        else
            if item then
                remove_item(item)
                changed[1] = item.key
            end
            reply = {'removed', item and 1 or 0}
        end
    elseif not item then
        reply = {'lost'}
    elseif item.score == DONE then
        reply = {ORDER == 'finish' and same and 'finished' or 'lost'}
    elseif item.ticket == '' then
        reply = {ORDER == 'give' and same and 'given' or 'lost'}
    elseif not owns then
        reply = {'lost'}
    else
        local body = ARGV[body_at]
        if body ~= '' then
            item.body = body
        end
        if ORDER == 'touch' then
            item.lease = max(num(ARGV[TOUCH_LEASE]) or 0, item.lease) -- it may only grow
            item.score = now + item.lease
            reply = {'touched', to_text(item.lease)}
        elseif ORDER == 'give' then
            local after = num(ARGV[GIVE_AFTER])
            item.score, item.ticket, item.lease, item.owner, item.note = now + after, '', after, '', ''
            reply = {'given'}
            given_back = true
        else
            item.score, item.ticket = DONE, ''
            reply = {'finished'}
        end
        save_item(item)
        if item.ticket ~= ticket_before then
            changed[1] = item.key
        end
    end
end

if taken then
    reply = {'taken', to_text(taken.fence), to_text(taken.score - now), taken.body, taken.key}
end
