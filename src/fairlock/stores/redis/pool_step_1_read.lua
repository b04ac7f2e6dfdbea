-- The pool step, part 1 of 4: read the state of one pool; functions that read and write items.
--
-- Purpose  The four parts, pool_step_1_read.lua to pool_step_4_write.lua, are joined into one script when they are
--          loaded. The script applies the rules of fairlock/rules/pools to native Redis structures, so that a step
--          costs the same however many items there are. A test sends the same orders to both and compares every
--          reply, wake-up, item and place in the queue.
-- KEYS     all keys of one pool, in one slot
--   1 items          hash  =KEY head of an item that was ever taken · #KEY body of an item · :TICKET the item that this
--                    ticket has: fence, a space, key · >TICKET a waiter · p last place
--                    s time of the last step; before it, as letters, the other keys in use: q (queue), w (watchers);
--                    without a letter pool_fast_take.lua, pool_fast_touch.lua and pool_fast_finish.lua work
--   2 due            zset  key -> score: when the item is due, in microseconds; -1 is done
--   3 queue          zset  ticket -> place of a waiter for any item; the head of the queue has the lowest
--   4 waiter_expiry  zset  ticket -> end of the poll_ttl of every waiter
--   5 watchers       zset  key, a zero byte, ticket -> 0, for every waiter for a named item
--   A head is text: fence, a colon, ticket; then lease owner-size note-size, each between two spaces, then owner and
--   note without a space between them. So one concatenation builds it, and an operator can read it. The ticket that
--   has finished an item may still be in its head, and does not have the item. A waiter is an array in
--   MessagePack: lease listener owner note place since poll_ttl key.
-- ARGV     1 prefix of the listeners' channels · 2 order, in lower case · 3 its first field: a ticket or a key
-- Returns  nothing: pool_step_4_write.lua returns the reply
--
-- Times are microseconds. Numbers become text by %d because `..` would write 1.79e+15. A server that evicts keys may
-- have removed any of these: an item without a score, and a score without an item, count as never written. A pool
-- without items and waiters takes no memory.

local ITEMS, DUE, QUEUE, WAITER_EXPIRY, WATCHERS = unpack(KEYS)
local LISTENERS, ORDER, SUBJECT = unpack(ARGV, 1, 3)

-- The positions of each order's fields in ARGV, as in messages.py.
local PUT_FIRST_ROW = 4
local TOUCH_TICKET, TOUCH_FENCE, TOUCH_BODY, TOUCH_LEASE = 4, 5, 6, 7
local GIVE_TICKET, GIVE_FENCE, GIVE_AFTER, GIVE_BODY = 4, 5, 6, 7
local FINISH_TICKET, FINISH_FENCE, FINISH_BODY = 4, 5, 6
local REMOVE_TICKET, REMOVE_FENCE, REMOVE_FORCE = 4, 5, 6
local SEEK_LEASE, SEEK_WAIT, SEEK_LISTENER, SEEK_OWNER, SEEK_NOTE, SEEK_KEY = 4, 5, 6, 7, 8, 9

local CONFIRM_WINDOW, SLEEP_CAP, AGO, DONE = 2000000, 10000000, 1000000000000000, -1
local IDLE = 600000 -- milliseconds for which the waiters of a pool without items are kept

local call, num, format, match, sub = redis.call, tonumber, string.format, string.match, string.sub
local min, max = math.min, math.max

local function to_text(number)
    return format('%d', number)
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local NOW = to_text(now)

local seeking = ORDER == 'seek'
local sender = (seeking or ORDER == 'quit') and SUBJECT or ''
local saved_seen, saved_place, saved_item, saved_waiter =
    unpack(call('HMGET', ITEMS, 's', 'p', ':' .. sender, '>' .. sender))
local in_use, seen = match(saved_seen or '0', '^(%a*)(%d+)')
local last_place, own_key = num(saved_place or 0), saved_item and match(saved_item, ' (.*)')
seen = num(seen)
local watcher_count = match(in_use, 'w') and call('ZCARD', WATCHERS) or 0
local has_item, was_empty = false, false -- an item was found and is still there: most steps need not count them
local head_before = match(in_use, 'q') and call('ZRANGE', QUEUE, 0, 0)[1]
local queued = head_before and true -- false: nothing is in the queue; true: perhaps

-- A server whose memory is full refuses a script whose first write adds something. So every order except one that adds
-- an item or a waiter removes something first: giving back, finishing, touching and polling always work.

if ORDER ~= 'put' and not (seeking and not own_key and not saved_waiter) then
    call('HDEL', ITEMS, 's') -- written again at the end
end

local function read_item(key, score)
    score = score or call('ZSCORE', DUE, key)
    if not score then
        return nil
    end
    local head, body = unpack(call('HMGET', ITEMS, '=' .. key, '#' .. key))
    if not body then
        return nil
    end
    head = head or '0: 0 0 0 '
    local fence, ticket, lease, owner_size, note_size, owner_at = match(head, '^(%d+):(%S*) (%d+) (%d+) (%d+) ()')
    local note_at = owner_at + owner_size
    score, has_item = num(score), true
    ticket = score ~= DONE and ticket or ''
    return {
        key = key, score = score, fence = num(fence), lease = num(lease), ticket = ticket, saved_ticket = ticket,
        owner = sub(head, owner_at, note_at - 1), note = sub(head, note_at, note_at + note_size - 1), body = body,
        saved_body = body,
    }
end

local function save_item(item)
    if item.saved_ticket ~= '' and item.saved_ticket ~= item.ticket then
        call('HDEL', ITEMS, ':' .. item.saved_ticket)
    end
    call('ZADD', DUE, to_text(item.score), item.key)
    if item.fence > 0 then
        local taker = to_text(item.fence) .. ':' .. item.ticket
        local head = table.concat({taker, to_text(item.lease), #item.owner, #item.note, item.owner}, ' ') .. item.note
        if item.ticket ~= '' and item.saved_ticket ~= item.ticket then
            local mine = to_text(item.fence) .. ' ' .. item.key
            call('HSET', ITEMS, '=' .. item.key, head, ':' .. item.ticket, mine)
        else
            call('HSET', ITEMS, '=' .. item.key, head)
        end
    end
    local added_fields = item.body ~= item.saved_body and call('HSET', ITEMS, '#' .. item.key, item.body)
    if added_fields == 0 and not item.saved_body then
        local old = call('HGET', ITEMS, '=' .. item.key) -- a new item that has a body already: its score was evicted
        local taker = match(old or '', ':%S*') or ''
        call('HDEL', ITEMS, '=' .. item.key, taker)
    end
    item.saved_ticket, item.saved_body = item.ticket, item.body
end

local function remove_item(item)
    call('ZREM', DUE, item.key)
    call('HDEL', ITEMS, '=' .. item.key, '#' .. item.key, ':' .. item.saved_ticket)
    has_item = false
end
