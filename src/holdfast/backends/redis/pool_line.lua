-- The pool's step, part 2 of 4: the clock, the silent, and what goes to whom.
--
-- Purpose  As in line.py and counter.py, in the same order and under the same names. What they know and Redis does not:
--          who is dead. Here they are only deaf, and silent, and what was handed to one of them is due again after
--          WINDOW. Whether anybody listens is asked before something is handed over.
-- KEYS     as in pool.lua
-- ARGV     as in pool_order.lua
-- Returns  nothing: pool_close.lua does

local function sleep_span(ahead)
    return min(WINDOW / 2 * (ahead + 1), SLEEP_CAP)
end

local function waiting(ticket)
    local row = call('HGET', ITEMS, '>' .. ticket)
    if not row then
        return nil
    end
    local w = cmsgpack.unpack(row)
    return {
        ticket = ticket, lease = w[1], ear = w[2], owner = w[3], note = w[4], place = w[5], since = w[6],
        patience = w[7], key = w[8],
    }
end

local function stand(w, ahead) -- one who waits, new there or heard again
    w.patience = 3 * sleep_span(ahead)
    call('ZADD', ENDS, text(now + w.patience), w.ticket)
    call('HSET', ITEMS, '>' .. w.ticket, cmsgpack.pack({
        w.lease, w.ear, w.owner, w.note, w.place, w.since, w.patience, w.key,
    }))
end

local function out(ticket)
    local w = waiting(ticket)
    if call('ZREM', ENDS, ticket) == 0 and not w then
        return
    end
    lined = lined - call('ZREM', LINE, ticket)
    if w and w.key ~= '' then
        watched = watched - call('ZREM', WATCH, w.key .. '\0' .. ticket)
    end
    call('HDEL', ITEMS, '>' .. ticket)
end

local function take(i, w, till)
    i.fence = max(i.fence + 1, now)
    i.score, i.ticket, i.lease, i.owner, i.note = till, w.ticket, w.lease, w.owner, w.note
    put(i)
end

local function first_due()
    while true do
        local key = call('ZRANGEBYSCORE', DUE, '0', NOW, 'LIMIT', 0, 1)[1]
        local i = key and item(key)
        if i or not key then
            return i
        end
        there = there - call('ZREM', DUE, key) -- its other half was evicted
    end
end

local handed, mine = {}, nil -- who was given something; what the asker has

local heard_at = {} -- how many listen, by ear

local function is_deaf(w)
    local ear = w.ear
    if ear == '' or w.ticket == asker then
        return false
    end
    heard_at[ear] = heard_at[ear] or call('PUBSUB', 'NUMSUB', EARS .. ear)[2]
    return heard_at[ear] == 0
end

-- What is due goes to those who stand in line, and is theirs for WINDOW. Whom nobody would hear of it is passed over
-- and keeps his place, but for what is left when all others have theirs.
local function hand_over(only_who_hears)
    local i, passed, everybody = lined > 0 and first_due(), 0, false
    while i and lined > 0 do
        local ticket = call('ZRANGE', LINE, passed, passed)[1]
        local w = ticket and waiting(ticket)
        if not ticket and (only_who_hears or everybody) then
            return
        elseif not ticket then
            passed, everybody = 0, true
        elseif w and not everybody and is_deaf(w) then
            passed = passed + 1
        else
            out(ticket)
            if w and ticket == asker then
                take(i, w, now + max(min(WINDOW, w.lease), num(ARGV[4])))
                mine = i
            elseif w then
                take(i, w, now + min(WINDOW, w.lease))
                handed[#handed + 1] = {w.ear, ticket, i.fence}
            end
            i = w and first_due() or (not w and i)
        end
    end
end

-- Turn back the clock: nothing is due later than its own span from now, and nobody's patience lasts longer.

if now < seen then
    for _, key in ipairs(call('ZRANGEBYSCORE', DUE, '(' .. NOW, '+inf')) do
        local i = item(key)
        if i and i.score > now + i.lease then
            call('ZADD', DUE, text(now + i.lease), key)
        end
    end
    local ends = in_use ~= '' and call('ZRANGEBYSCORE', ENDS, '(' .. NOW, '+inf', 'WITHSCORES') or {}
    for n = 1, #ends, 2 do
        local w = waiting(ends[n])
        if w and num(ends[n + 1]) > now + w.patience then
            call('ZADD', ENDS, text(now + w.patience), ends[n])
        end
    end
end

-- Sweep those who were silent for too long. Whoever asks is alive.

if in_use ~= '' then
    for _, ticket in ipairs(call('ZRANGEBYSCORE', ENDS, '-inf', NOW)) do
        if ticket ~= asker then
            out(ticket)
        end
    end
end
