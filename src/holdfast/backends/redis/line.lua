-- The doorman's step, part 4 of 6: the clock, the asker, the sweep, and the first admitting.
--
-- Purpose  As in rules.py, in the same order and under the same names. What rules.py knows and Redis does not: who is
--          dead. Here they are only deaf, and silent. Whether anybody listens is asked before a grant, and not learnt
--          from telling of it.
-- KEYS     as in record.lua
-- ARGV     as in command.lua
-- Returns  nothing: close.lua does

local entering = COMMAND == 'enter'
local asker = (COMMAND == 'evict' or COMMAND == 'resize') and '' or TICKET
local before = fence

local function patience(place)
    return 3 * min(WINDOW / 2 * (place + 1), SLEEP_CAP)
end

local function grave_of(ticket)
    local grave = buried > 0 and call('HGET', DOOR, '#' .. ticket)
    return grave and cmsgpack.unpack(grave)
end

local function heard(e, place)
    e.patience = patience(place)
    e.expires = now + e.patience
    if e.passed == PASSED or e.passed == SILENT then
        e.passed = HEARD
    end
    stand(e)
end

-- Turn back the clock: nothing may last longer than its own span from now.

if now < seen then
    for _, e in ipairs(seats('+inf')) do
        e.expires = min(e.expires, now + (e.sure and e.lease or min(e.lease, WINDOW)))
        e.since = min(e.since, now)
        sit(e)
    end
    for _, ticket in ipairs(lined > 0 and call('ZRANGE', LINE, 0, -1) or {}) do
        local e = entrant(ticket)
        e.expires = min(e.expires, now + e.patience)
        e.since = min(e.since, now)
        stand(e)
    end
    local graves = buried > 0 and call('ZRANGE', GRAVES, 0, -1, 'WITHSCORES') or {}
    for i = 1, #graves, 2 do
        put(GRAVES, min(num(graves[i + 1]), now + grave_of(graves[i])[1]), graves[i])
    end
end

-- Hear the asker, before anything is swept.

if entering and ahead then
    heard(subject, ahead)
end

-- Sweep: a bounded number of the line, insiders, graves.

local more_expired = false -- whether some may be left in the middle of the line
if lined > 0 then
    local expired = call('ZRANGEBYSCORE', DUE, '-inf', NOW, 'LIMIT', 0, SWEEP)
    for _, ticket in ipairs(expired) do
        out_of_line(ticket)
    end
    more_expired = #expired == SWEEP
end

local over = seats(NOW)
if #over > 0 then
    local wanted = lined > 0 and call('ZCOUNT', DUE, '(' .. NOW, '+inf') > 0
    local back = {}
    for _, e in ipairs(over) do
        local renews = entering or (COMMAND ~= 'leave' and (ARGV[4] == '' or num(ARGV[4]) == e.fence))
        renews = renews and e.ticket == asker
        local is_buried = grave_of(e.ticket)
        if not is_buried and not wanted and renews then
            -- an expired lease that nobody wanted: it stays
        elseif not is_buried and not e.sure and e.since + e.patience > now and e.weight <= capacity then
            back[#back + 1] = e
        else
            out_of_room(e)
        end
    end
    local head = lined > 0 and #back > 0 and num(call('ZRANGE', LINE, 0, 0, 'WITHSCORES')[2]) or 0
    for i, e in ipairs(back) do -- admitted, not heard in time, but not given up either: to the head of the line
        out_of_room(e)
        places = places + 1
        e.place, e.expires, e.patience, e.since = places, e.since + e.patience, e.since + e.patience - now, now
        e.fence, e.passed = 0, SILENT
        put(LINE, head - #back + i - 1, e.ticket)
        lined = lined + 1
        if entering and e.ticket == asker then
            heard(e, 0)
        else
            stand(e)
        end
    end
end

if buried > 0 then
    for _, ticket in ipairs(call('ZRANGEBYSCORE', GRAVES, '-inf', NOW)) do
        buried = buried - call('ZREM', GRAVES, ticket)
        call('HDEL', DOOR, '#' .. ticket)
    end
end

-- Admit from the head of the line while it fits.

local heard_at = {} -- how many listen, by ear

local function is_deaf(e)
    if e.ear == '' or e.passed == HEARD or (entering and e.ticket == asker) then
        return false
    end
    heard_at[e.ear] = heard_at[e.ear] or listeners(e.ear)
    return heard_at[e.ear] == 0
end

-- Whose turn it is, and the deaf whom that passes over. Expired ones that come up on the way are removed.
local function next_in_line()
    local fallback, deaf, i = nil, {}, 0
    while true do
        local ticket = call('ZRANGE', LINE, i, i)[1]
        if not ticket then
            return fallback, {}
        end
        local e = entrant(ticket)
        if e.expires <= now then
            out_of_line(ticket)
        elseif e.passed == SILENT then
            i = i + 1
        elseif is_deaf(e) then
            fallback = fallback or e
            deaf[#deaf + 1] = e
            i = i + 1
        else
            return e, deaf
        end
    end
end

local granted = {}

local function let_in(e)
    local sure = entering and e.ticket == asker
    local first = max(fence + 1, now)
    fence = first + e.block - 1
    e.patience = max(e.expires - now, 0)
    e.fence, e.sure, e.since, e.passed, e.out = first, sure, now, FRESH, false
    e.expires = now + (sure and e.lease or min(e.lease, WINDOW))
    seated = seated + 1
    used = used + e.weight
    kept = kept + (e.ear == '' and 1 or 0)
    sit(e)
    if not sure then
        granted[#granted + 1] = e
    end
end

local function admit()
    while lined > 0 and (used < capacity or more_expired) do -- in a full room there is only the expired to look for
        local e, deaf = next_in_line()
        if not e or e.weight > capacity - used then
            return
        end
        for _, other in ipairs(deaf) do
            if other.passed == FRESH then
                other.passed = PASSED
                keep(other)
            end
        end
        out_of_line(e.ticket)
        let_in(e)
    end
end

admit()
