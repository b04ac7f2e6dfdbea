-- The first half of the doorman's step: the clock, the asker, the sweep, and admitting from the line.
--
-- Purpose  The rules of holdfast/doorman/rules.py, in the same order and under the same names. record.lua comes before
--          this, step.lua after it; loading joins the three. What rules.py knows and Redis does not: the dead. Whoever
--          has died is only deaf here, and silent.
-- KEYS     as in record.lua
-- ARGV     as in record.lua
-- Returns  nothing: step.lua does
--
-- Whether anybody listens is asked before a grant, not learnt from telling of it.

local WINDOW, GRAVE, SLEEP_CAP, SWEEP = 2000000, 60000000, 10000000, 16

local entering = COMMAND == 'enter'
local asker = (COMMAND == 'evict' or COMMAND == 'resize') and '' or TICKET
local before = fence

-- The clock, the asker, the sweep

local function patience(place)
    return 3 * min(WINDOW / 2 * (place + 1), SLEEP_CAP)
end

local function why(ticket) -- what its grave says
    local grave = buried > 0 and call('HGET', DOOR, '#' .. ticket)
    if grave then
        local span, kind, by, reason = match(grave, '^(%d+)\t([^\t]*)\t([^\t]*)\t([^\t]*)$')
        return {kind, by, reason, span = num(span)}
    end
end

local function heard(e, place)
    e.patience = patience(place)
    e.expires = now + e.patience
    if e.passed == PASSED or e.passed == SILENT then
        e.passed = HEARD
    end
    stand(e)
end

local function turn_back_the_clock()
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
        put(GRAVES, min(num(graves[i + 1]), now + why(graves[i]).span), graves[i])
    end
end

local function returned(e)
    places = places + 1
    local till = e.since + e.patience
    out_of_room(e)
    e.place, e.since, e.expires, e.patience, e.fence, e.passed = places, now, till, till - now, 0, SILENT
    if entering and e.ticket == asker then
        heard(e, 0)
    else
        stand(e)
    end
end

local function renews(e)
    if e.ticket ~= asker then
        return false
    end
    return entering or ((COMMAND == 'renew' or COMMAND == 'keep') and (ARGV[4] == '' or num(ARGV[4]) == e.fence))
end

local function sweep_inside(over)
    local wanted = lined > 0 and call('ZCOUNT', DUE, '(' .. NOW, '+inf') > 0
    local back = {}
    for _, e in ipairs(over) do
        if why(e.ticket) then
            out_of_room(e)
        elseif not wanted and renews(e) then
            -- an expired lease that nobody wanted: it stays
        elseif not e.sure and e.since + e.patience > now and e.weight <= capacity then
            back[#back + 1] = e
        else
            out_of_room(e)
        end
    end
    local head = lined > 0 and #back > 0 and first_of(LINE) or 0
    for i, e in ipairs(back) do
        returned(e)
        put(LINE, head - #back + i - 1, e.ticket)
    end
    lined = lined + #back
end

local more_expired = false -- whether some may be left in the middle of the line

local function sweep()
    if lined > 0 then
        local expired = call('ZRANGEBYSCORE', DUE, '-inf', NOW, 'LIMIT', 0, SWEEP)
        for _, ticket in ipairs(expired) do
            out_of_line(ticket)
        end
        more_expired = #expired == SWEEP
    end
    local over = seats(NOW)
    if #over > 0 then
        sweep_inside(over)
    end
    if buried > 0 then
        for _, ticket in ipairs(call('ZRANGEBYSCORE', GRAVES, '-inf', NOW)) do
            buried = buried - call('ZREM', GRAVES, ticket)
            call('HDEL', DOOR, '#' .. ticket)
        end
    end
end

-- Admitting

local listeners = {} -- how many, by ear

local function is_deaf(e)
    if e.ear == '' or e.passed == HEARD or (entering and e.ticket == asker) then
        return false
    end
    if listeners[e.ear] == nil then
        listeners[e.ear] = call('PUBSUB', 'NUMSUB', EARS .. e.ear)[2]
    end
    return listeners[e.ear] == 0
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

local function room()
    return capacity - used
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
    sit(e)
    if not sure then
        granted[#granted + 1] = e
    end
end

local function admit()
    while lined > 0 and (room() > 0 or more_expired) do -- in a full room there is only the expired to look for
        local e, deaf = next_in_line()
        if not e or e.weight > room() then
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
