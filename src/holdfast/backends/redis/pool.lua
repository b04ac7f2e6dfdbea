-- The pool's step, part 1 of 4: one pool, as Redis keeps it, is opened.
--
-- Purpose  pool.lua, pool_line.lua, pool_order.lua and pool_close.lua, joined when they are loaded, are one step: the
--          rules of holdfast/pool on native structures, so that a step costs the same however many items there are. A
--          test drives both with the same orders and compares every reply, wake-up, item and place in line.
-- KEYS     all of one pool, in one slot
--   1 items   hash  =KEY head of an item that was ever taken · #KEY body of an item · :TICKET what this ticket has:
--                   fence, a space, key · >TICKET one who waits · p last place
--                   s seen; before it, letters for those of the other keys that are in use: l (line), w (watch); if
--                   there are none, the short cuts will do (pool_take.lua, pool_keep.lua, pool_finish.lua)
--   2 due     zset  key -> score: when it is due, in microseconds; -1 is done
--   3 line    zset  ticket -> place, of those who wait for any item; the head has the lowest
--   4 ends    zset  ticket -> end of the patience of all who wait
--   5 watch   zset  key, a zero byte, ticket -> 0, of those who wait for a named item
--   A head is text: fence, a colon, ticket; then lease owner-size note-size, each between two spaces, owner and note
--   without one. So it is put together by one stroke, and an operator can read it. Who has finished an item may still
--   stand there, and has nothing. One who waits is an array in MessagePack: lease ear owner note place since patience
--   key.
-- ARGV     1 prefix of the ears' channels · 2 order, in small letters · 3 its first field: a ticket, or the item's key
-- Returns  nothing: pool_close.lua does
--
-- Times are microseconds. Numbers become text by %d, for `..` would write 1.79e+15. A server that evicts keys may
-- have taken any of these: an item without a score, or a score without an item, was never there. A pool of which
-- nothing is left takes no memory.

local ITEMS, DUE, LINE, ENDS, WATCH = unpack(KEYS)
local EARS, ORDER, SUBJECT = ARGV[1], ARGV[2], ARGV[3]
local WINDOW, SLEEP_CAP, AGO, DONE = 2000000, 10000000, 1000000000000000, -1
local IDLE = 600000 -- milliseconds for which those are remembered who wait at a pool that has nothing

local call, num, format, match, sub = redis.call, tonumber, string.format, string.match, string.sub
local min, max = math.min, math.max

local function text(number)
    return format('%d', number)
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local NOW = text(now)

local seeking = ORDER == 'seek'
local asker = (seeking or ORDER == 'quit') and SUBJECT or ''
local found = call('HMGET', ITEMS, 's', 'p', ':' .. asker, '>' .. asker)
local in_use, seen = match(found[1] or '0', '^(%a*)(%d+)')
local places, has, waits = num(found[2] or 0), found[3] and match(found[3], ' (.*)'), found[4]
seen = num(seen)
local lined = match(in_use, 'l') and call('ZCARD', LINE) or 0
local watched = match(in_use, 'w') and call('ZCARD', WATCH) or 0
local there = call('ZCARD', DUE)
local was_there = there
local head_before = lined > 0 and call('ZRANGE', LINE, 0, 0)[1]

-- A server whose memory is full refuses a script whose first write adds something. So all but those who bring something
-- new take something away first: they can always give back, finish, touch and poll.

if ORDER ~= 'put' and not (seeking and not has and not waits) then
    call('HDEL', ITEMS, 's') -- written again at the end
end

local function item(key)
    local score = call('ZSCORE', DUE, key)
    local rows = score and call('HMGET', ITEMS, '=' .. key, '#' .. key)
    if not rows or not rows[2] then
        return nil
    end
    local head, body = rows[1] or '0: 0 0 0 ', rows[2]
    local fence, ticket, lease, owner, note, at = match(head, '^(%d+):(%S*) (%d+) (%d+) (%d+) ()')
    local mid = at + owner
    score = num(score)
    ticket = score ~= DONE and ticket or ''
    return {
        key = key, score = score, fence = num(fence), lease = num(lease), ticket = ticket, was = ticket,
        owner = sub(head, at, mid - 1), note = sub(head, mid, mid + note - 1), body = body, kept = body,
    }
end

local function put(i)
    if i.was ~= '' and i.was ~= i.ticket then
        call('HDEL', ITEMS, ':' .. i.was)
    end
    call('ZADD', DUE, text(i.score), i.key)
    if i.fence > 0 then
        local whose = text(i.fence) .. ':' .. i.ticket
        local head = table.concat({whose, text(i.lease), #i.owner, #i.note, i.owner}, ' ')
        call('HSET', ITEMS, '=' .. i.key, head .. i.note)
    end
    if i.body ~= i.kept and call('HSET', ITEMS, '#' .. i.key, i.body) == 0 and not i.kept then
        local old = call('HGET', ITEMS, '=' .. i.key) -- a new one, and there is a body: its score had been evicted
        local whose = match(old or '', ':%S*') or ''
        call('HDEL', ITEMS, '=' .. i.key, whose)
    end
    if i.ticket ~= '' and i.was ~= i.ticket then
        call('HSET', ITEMS, ':' .. i.ticket, text(i.fence) .. ' ' .. i.key)
    end
    i.was, i.kept = i.ticket, i.body
end

local function drop(i)
    call('ZREM', DUE, i.key)
    call('HDEL', ITEMS, '=' .. i.key, '#' .. i.key, ':' .. i.was)
    there = there - 1
end
