-- The pool's step, part 1 of 4: one pool, as Redis keeps it, is opened.
--
-- Purpose  pool.lua, pool_line.lua, pool_order.lua and pool_close.lua, joined when they are loaded, are one step: the
--          rules of holdfast/pool on native structures, so that a step costs the same however many items there are. A
--          test drives both with the same orders and compares every reply, wake-up, item and place in line.
-- KEYS     all of one pool, in one slot
--   1 items   hash  =KEY an item · :TICKET the key of what this ticket has · >TICKET one who waits
--                   s seen · p last place · g which of the other keys are in use: letters l (line), w (watch);
--                   if it is missing, none, and pool_take.lua and pool_keep.lua will do
--   2 due     zset  key -> score: when it is due, in microseconds; -1 is done
--   3 line    zset  ticket -> place, of those who wait for any item; the head has the lowest
--   4 ends    zset  ticket -> end of the patience of all who wait
--   5 watch   zset  key, a zero byte, ticket -> 0, of those who wait for a named item
--   An item is text: fence lease ticket owner-size note-size, each with a space behind it, then owner, note and body
--   without one. So whoever has it by its fence and ticket is found by one match, and an operator can read it. One who
--   waits is an array in MessagePack: lease ear owner note place since patience key.
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
local found = call('HMGET', ITEMS, 's', 'p', 'g', ':' .. asker, '>' .. asker)
local seen, places, in_use = num(found[1] or 0), num(found[2] or 0), found[3] or ''
local lined = match(in_use, 'l') and call('ZCARD', LINE) or 0
local watched = match(in_use, 'w') and call('ZCARD', WATCH) or 0
local there = call('ZCARD', DUE)
local was_there, was_in_use = there, in_use
local head_before = lined > 0 and call('ZRANGE', LINE, 0, 0)[1]

-- A server whose memory is full refuses a script whose first write adds something. So all but those who bring something
-- new take something away first: they can always give back, finish, touch and poll.

if ORDER ~= 'put' and not (seeking and not found[4] and not found[5]) then
    call('HDEL', ITEMS, 'g') -- written again at the end
    was_in_use = ''
end

local function item(key)
    local score = call('ZSCORE', DUE, key)
    local row = score and call('HGET', ITEMS, '=' .. key)
    if not row then
        return nil
    end
    local fence, lease, ticket, owner, note, at = match(row, '^(%d+) (%d+) (%S*) (%d+) (%d+) ()')
    local mid = at + owner
    return {
        key = key, score = num(score), fence = num(fence), lease = num(lease), ticket = ticket, was = ticket,
        owner = sub(row, at, mid - 1), note = sub(row, mid, mid + note - 1), body = sub(row, mid + note),
    }
end

local function put(i)
    if i.was ~= '' and i.was ~= i.ticket then
        call('HDEL', ITEMS, ':' .. i.was)
    end
    call('ZADD', DUE, text(i.score), i.key)
    local head = table.concat({text(i.fence), text(i.lease), i.ticket, #i.owner, #i.note, ''}, ' ')
    call('HSET', ITEMS, '=' .. i.key, head .. i.owner .. i.note .. i.body)
    if i.ticket ~= '' and i.was ~= i.ticket then
        call('HSET', ITEMS, ':' .. i.ticket, i.key)
    end
    i.was = i.ticket
end

local function drop(i)
    call('ZREM', DUE, i.key)
    call('HDEL', ITEMS, '=' .. i.key, ':' .. i.was)
    there = there - 1
end
