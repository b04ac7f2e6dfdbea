-- One step of the doorman, on native structures, so that its cost does not grow with the line.
-- The rules are those of holdfast/doorman/rules.py, in the same order and under the same names; a test drives both with
-- the same commands and compares every reply, every wake-up and every record.
--
-- KEYS     all of one resource, in one slot
--   1 door    hash  c capacity · x fixed · f last fence · p last place · s seen · u weight inside · h how far the TTL reaches
--                   g '1' while keys 2 to 8 are in use · a the lone seat, while they are not: ticket expires fence block
--                   weight lease patience ear owner note place since sure passed, by tabs (enter.lua, leave.lua)
--   2 in      zset  ticket -> end of the seat
--   3 line    zset  ticket -> order; the head has the lowest
--   4 due     zset  ticket -> end of its patience
--   5 who     hash  ticket -> weight lease patience block ear owner note place since expires fence sure passed, by tabs
--   6 graves  zset  ticket -> until
--   7 why     hash  ticket -> span kind by reason, by tabs
--   8 unsure  zset  ticket -> end of the window, of those inside who were not heard yet
-- ARGV     channel prefix of the ears, command, and its fields in the order of holdfast/doorman/commands.py ('' = None)
-- Returns  the reply: its name, its fields, and '1' if enter.lua and leave.lua will do next time, else '0'
-- Publishes 'ticket place fence' to the ear of each who was let in and not heard, after the record is written
--
-- Times are microseconds. Numbers go into strings by %.0f, for `..` would write 1.79e+15. The first write of a Leave
-- takes something away, so that it works on a server whose memory is full.

local DOOR, IN, LINE, DUE, WHO, GRAVES, WHY, UNSURE = unpack(KEYS)
local PREFIX, COMMAND = ARGV[1], ARGV[2]
local WINDOW, GRAVE, SLEEP_CAP, SWEEP = 2000000, 60000000, 10000000, 16
local FRESH, PASSED, SILENT, HEARD = 0, 1, 2, 3
local IDLE = 600000000 -- a record goes by itself when nothing has happened for so long after its last expiry

local call, num, fmt, match = redis.call, tonumber, string.format, string.match
local min, max = math.min, math.max

local function text(number)
    return fmt('%.0f', number)
end

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local NOW = text(now)

local door = call('HMGET', DOOR, 'c', 'x', 'f', 'p', 's', 'u', 'h', 'a')
local capacity, fixed, fence = num(door[1] or 0), door[2] == '1', num(door[3] or 0)
local places, seen, used = num(door[4] or 0), num(door[5] or 0), num(door[6] or 0)
local reach = num(door[7] or 0)
local before = fence

local entering = COMMAND == 'enter'
local asker = ''
if entering or COMMAND == 'leave' or COMMAND == 'renew' or COMMAND == 'keep' then
    asker = ARGV[3]
end

-- Entrants, read once and written when they change.

local known = {}

local function unpacked(ticket, line)
    local weight, lease, patience, block, ear, owner, note, place, since, expires, first, sure, passed = match(line,
        '^(%d+)\t(%d+)\t(%d+)\t(%d+)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d)\t(%d)$')
    return {
        ticket = ticket, weight = num(weight), lease = num(lease), patience = num(patience), block = num(block),
        ear = ear, owner = owner, note = note, place = num(place), since = num(since), expires = num(expires),
        fence = num(first), sure = sure == '1', passed = num(passed),
    }
end

local function packed(e)
    return table.concat({
        text(e.weight), text(e.lease), text(e.patience), text(e.block), e.ear, e.owner, e.note, text(e.place),
        text(e.since), text(e.expires), text(e.fence), e.sure and '1' or '0', text(e.passed),
    }, '\t')
end

local function entrant(ticket)
    local e = known[ticket]
    if not e then
        e = unpacked(ticket, call('HGET', WHO, ticket))
        known[ticket] = e
    end
    return e
end

local function write(e)
    call('HSET', WHO, e.ticket, packed(e))
end

local function sit(e) -- write one who is inside
    write(e)
    call('ZADD', IN, text(e.expires), e.ticket)
    if e.sure then
        call('ZREM', UNSURE, e.ticket)
    else
        call('ZADD', UNSURE, text(e.expires), e.ticket)
    end
end

local function stand(e) -- write one who is in line
    write(e)
    call('ZADD', DUE, text(e.expires), e.ticket)
end

local function out_of_line(ticket)
    call('ZREM', LINE, ticket)
    call('ZREM', DUE, ticket)
    call('HDEL', WHO, ticket)
    known[ticket] = nil
end

local function out_of_room(e)
    call('ZREM', IN, e.ticket)
    call('ZREM', UNSURE, e.ticket)
    call('HDEL', WHO, e.ticket)
    used = used - e.weight
    known[e.ticket] = nil
end

local function inside(ticket)
    if call('ZSCORE', IN, ticket) then
        return entrant(ticket)
    end
end

if door[8] then -- the lone seat takes its place among the others
    call('HDEL', DOOR, 'a')
    local ticket, expires, first, block, weight, lease, patience, ear, owner, note, place, since, sure, passed =
        match(door[8], '^([^\t]*)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t(%d+)\t(%d+)\t(%d)\t(%d)$')
    known[ticket] = {
        ticket = ticket, weight = num(weight), lease = num(lease), patience = num(patience), block = num(block),
        ear = ear, owner = owner, note = note, place = num(place), since = num(since), expires = num(expires),
        fence = num(first), sure = sure == '1', passed = num(passed),
    }
    sit(known[ticket])
end

-- The clock, the asker, the sweep

local function sleep_span(ahead)
    return min(WINDOW / 2 * (ahead + 1), SLEEP_CAP)
end

local function heard(e, ahead)
    e.patience = 3 * sleep_span(ahead)
    e.expires = now + e.patience
    if e.passed == PASSED or e.passed == SILENT then
        e.passed = HEARD
    end
    stand(e)
end

local function buried(ticket)
    local grave = call('HGET', WHY, ticket)
    if grave then
        local span, kind, by, reason = match(grave, '^(%d+)\t([^\t]*)\t([^\t]*)\t([^\t]*)$')
        return {kind = kind, by = by, reason = reason, span = num(span)}
    end
end

if now < seen then
    for _, ticket in ipairs(call('ZRANGE', IN, 0, -1)) do
        local e = entrant(ticket)
        e.expires = min(e.expires, now + (e.sure and e.lease or min(e.lease, WINDOW)))
        e.since = min(e.since, now)
        sit(e)
    end
    for _, ticket in ipairs(call('ZRANGE', LINE, 0, -1)) do
        local e = entrant(ticket)
        e.expires = min(e.expires, now + e.patience)
        e.since = min(e.since, now)
        stand(e)
    end
    local graves = call('ZRANGE', GRAVES, 0, -1, 'WITHSCORES')
    for i = 1, #graves, 2 do
        call('ZADD', GRAVES, text(min(num(graves[i + 1]), now + buried(graves[i]).span)), graves[i])
    end
end

if entering then
    local ahead = call('ZRANK', LINE, asker)
    if ahead then
        heard(entrant(asker), ahead)
    end
end

for _, ticket in ipairs(call('ZRANGEBYSCORE', DUE, '-inf', NOW, 'LIMIT', 0, SWEEP)) do
    out_of_line(ticket)
end

local function renews(e)
    if e.ticket ~= asker then
        return false
    end
    return entering or ((COMMAND == 'renew' or COMMAND == 'keep') and (ARGV[4] == '' or num(ARGV[4]) == e.fence))
end

local function returned(e)
    places = places + 1
    local till = e.since + e.patience
    call('ZREM', IN, e.ticket)
    call('ZREM', UNSURE, e.ticket)
    used = used - e.weight
    e.place, e.since, e.expires, e.patience, e.fence, e.passed = places, now, till, till - now, 0, SILENT
    e.sure = false
    if entering and e.ticket == asker then
        heard(e, 0)
    else
        stand(e)
    end
end

local over = call('ZRANGEBYSCORE', IN, '-inf', NOW)
if #over > 0 then
    local wanted = call('ZCOUNT', DUE, '(' .. NOW, '+inf') > 0
    local back = {}
    for i, ticket in ipairs(over) do
        over[i] = entrant(ticket)
    end
    table.sort(over, function(a, b) return a.fence < b.fence end)
    for _, e in ipairs(over) do
        if buried(e.ticket) then
            out_of_room(e)
        elseif not wanted and renews(e) then
            -- an expired lease that nobody wanted
        elseif not e.sure and e.since + e.patience > now and e.weight <= capacity then
            back[#back + 1] = e
        else
            out_of_room(e)
        end
    end
    if #back > 0 then
        local head = num(call('ZRANGE', LINE, 0, 0, 'WITHSCORES')[2] or 0)
        for i, e in ipairs(back) do
            returned(e)
            call('ZADD', LINE, text(head - #back + i - 1), e.ticket)
        end
    end
end

local graves = call('ZRANGEBYSCORE', GRAVES, '-inf', NOW)
if #graves > 0 then
    call('ZREM', GRAVES, unpack(graves))
    call('HDEL', WHY, unpack(graves))
end

-- Admitting

local listeners = {}

local function is_deaf(e)
    if e.ear == '' or e.passed == HEARD or (entering and e.ticket == asker) then
        return false
    end
    if listeners[e.ear] == nil then
        listeners[e.ear] = call('PUBSUB', 'NUMSUB', PREFIX .. e.ear)[2]
    end
    return listeners[e.ear] == 0
end

local granted = {}

local function let_in(e)
    local sure = entering and e.ticket == asker
    local first = max(fence + 1, now)
    fence = first + e.block - 1
    e.patience = max(e.expires - now, 0)
    e.fence, e.sure, e.since, e.passed = first, sure, now, FRESH
    e.expires = now + (sure and e.lease or min(e.lease, WINDOW))
    used = used + e.weight
    known[e.ticket] = e
    sit(e)
    if not sure then
        granted[#granted + 1] = e.ticket
    end
end

-- Whose turn it is, and whom that passes over. Expired ones that come up on the way are removed.
local function next_in_line()
    local fallback, passed, i = nil, {}, 0
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
            passed[#passed + 1] = e
            i = i + 1
        else
            return e, passed
        end
    end
end

local function admit()
    while true do
        local e, passed = next_in_line()
        if not e or e.weight > capacity - used then
            return
        end
        call('ZREM', LINE, e.ticket)
        call('ZREM', DUE, e.ticket)
        for _, other in ipairs(passed) do
            if other.passed == FRESH then
                other.passed = PASSED
                write(other)
            end
        end
        let_in(e)
    end
end

-- The commands

local dropped = {}

local function drop(e)
    dropped[#dropped + 1] = {ear = e.ear, ticket = e.ticket}
end

local function bury(ticket, lease, kind, by, reason)
    if not buried(ticket) then
        local span = max(GRAVE, lease)
        call('ZADD', GRAVES, text(now + span), ticket)
        call('HSET', WHY, ticket, table.concat({text(span), kind, by, reason}, '\t'))
    end
end

local function enter(ticket, wanted, weight, lease, wait, fair, block, ear, owner, note)
    local why = buried(ticket)
    if why then
        return {'gone', why.kind, why.by, why.reason}
    end
    local e = inside(ticket)
    if e then
        e.sure = true
        e.expires = now + e.lease
        sit(e)
        return
    end
    local lined = call('ZCARD', LINE)
    if lined > 0 and call('ZSCORE', LINE, ticket) then
        return
    end
    if wanted == 0 then
        wanted = capacity
    end
    if wanted ~= capacity and (lined > 0 or fixed or call('EXISTS', IN) == 1) then
        return {'mismatch', text(capacity)}
    end
    if weight < 1 or weight > wanted then
        return {'mismatch', text(wanted)}
    end
    capacity = wanted
    local span = 3 * sleep_span(lined)
    e = {
        ticket = ticket, weight = weight, lease = lease, patience = span, block = weight == wanted and max(block, 1) or 1,
        ear = ear, owner = owner, note = note, place = 0, since = now, expires = now + span, fence = 0, sure = false,
        passed = FRESH,
    }
    if (lined == 0 or not fair) and weight <= capacity - used then
        let_in(e)
        return
    end
    if not wait then
        -- One who only tries may pass a line of silent and deaf ones.
        local first, _ = next_in_line()
        if weight > capacity - used or (first and not is_deaf(first)) then
            return {'refused'}
        end
    end
    places = places + 1
    e.place = places
    known[ticket] = e
    stand(e)
    call('ZADD', LINE, text(num(call('ZRANGE', LINE, -1, -1, 'WITHSCORES')[2] or 0) + 1), ticket)
end

local function answer_enter()
    local e = inside(asker)
    if e then
        return {'admitted', text(e.fence), text(e.expires - now)}
    end
    local ahead = call('ZRANK', LINE, asker)
    e = entrant(asker)
    if e.patience ~= 3 * sleep_span(ahead) then
        heard(e, ahead)
    end
    local soon
    if ahead > 0 then
        soon = entrant(call('ZRANGE', LINE, 0, 0)[1]).expires
        soon = min(soon, num(call('ZRANGE', UNSURE, 0, 0, 'WITHSCORES')[2] or soon))
    else
        soon = num(call('ZRANGE', IN, 0, 0, 'WITHSCORES')[2] or now)
    end
    soon = soon - now
    if e.lease < WINDOW then
        soon = min(soon, math.floor(e.lease / 2) * (ahead + 1))
    end
    return {'waiting', text(ahead), text(e.place), text(max(soon, 1))}
end

local function leave(ticket, buries, of)
    local e = inside(ticket)
    local held, lease = false, 0
    if e then
        if of ~= '' and not (e.fence <= num(of) and num(of) < e.fence + e.block) then
            return {'left', '0'}
        end
        lease = e.lease
        out_of_room(e)
        held = not buried(ticket)
    elseif call('ZSCORE', LINE, ticket) then
        lease = entrant(ticket).lease
        out_of_line(ticket)
    end
    if buries then
        bury(ticket, lease, 'left', '', '')
    end
    return {'left', held and '1' or '0'}
end

local function renew(ticket, of, weight, lease)
    local why = buried(ticket)
    if why then
        return {'notinside', why.kind, why.by, why.reason}
    end
    local e = inside(ticket)
    if not e or (of ~= '' and num(of) ~= e.fence) then
        return {'notinside'}
    end
    if lease then
        e.lease = lease
        e.ear = ''
    elseif weight ~= '' then
        local lighter = max(1, min(num(weight), e.weight))
        used = used - e.weight + lighter
        e.weight = lighter
    end
    e.sure = true
    e.expires = now + e.lease
    sit(e)
    return {'admitted', text(e.fence), text(e.lease)}
end

local function evict(ticket, by, reason, at_once)
    local tickets = {ticket}
    if ticket == '' then
        tickets = call('ZRANGE', IN, 0, -1)
        for i, one in ipairs(tickets) do
            tickets[i] = entrant(one)
        end
        table.sort(tickets, function(a, b) return a.fence < b.fence end)
        for i, one in ipairs(tickets) do
            tickets[i] = one.ticket
        end
    end
    local there = {'done'}
    for _, one in ipairs(tickets) do
        local e = inside(one)
        local lease = 0
        if e then
            there[#there + 1] = one
            lease = e.lease
            drop(e)
            if at_once then
                out_of_room(e)
            end
        elseif call('ZSCORE', LINE, one) then
            e = entrant(one)
            there[#there + 1] = one
            lease = e.lease
            drop(e)
            out_of_line(one)
        end
        bury(one, lease, 'evicted', by, reason)
    end
    return there
end

local function resize(to)
    local there = {'done'}
    capacity = to
    fixed = true
    for _, ticket in ipairs(call('ZRANGE', LINE, 0, -1)) do
        local e = entrant(ticket)
        if e.weight > to then
            there[#there + 1] = ticket
            drop(e)
            out_of_line(ticket)
        end
    end
    return there
end

admit()
local reply
if entering then
    reply = enter(asker, num(ARGV[4]), num(ARGV[5]), num(ARGV[6]), ARGV[7] == '1', ARGV[8] == '1', num(ARGV[9]),
        ARGV[10], ARGV[11], ARGV[12])
elseif COMMAND == 'leave' then
    reply = leave(asker, ARGV[4] == '1', ARGV[5])
elseif COMMAND == 'renew' then
    reply = renew(asker, ARGV[4], ARGV[5], nil)
elseif COMMAND == 'keep' then
    reply = renew(asker, ARGV[4], '', num(ARGV[5]))
elseif COMMAND == 'evict' then
    reply = evict(ARGV[3], ARGV[4], ARGV[5], ARGV[6] == '1')
else
    reply = resize(num(ARGV[3]))
end
admit()
reply = reply or answer_enter()

-- Write the door, see to it that all of it lasts long enough, and wake whom it concerns.

local lined, buried_ones, seated = call('ZCARD', LINE), call('ZCARD', GRAVES), call('ZCARD', IN)
local lone = lined == 0 and buried_ones == 0 and seated <= 1
if lone then
    call('HDEL', DOOR, 'g')
else
    call('HSET', DOOR, 'g', '1')
end
call('HSET', DOOR, 'c', text(capacity), 'x', fixed and '1' or '0', 'f', text(fence), 'p', text(places), 's', NOW,
    'u', text(used))

for _, ticket in ipairs(granted) do
    local e = known[ticket]
    if e and not e.sure and inside(ticket) and not buried(ticket) then
        call('PUBLISH', PREFIX .. e.ear, ticket .. ' ' .. text(e.place) .. ' ' .. text(e.fence))
    end
end
for _, e in ipairs(dropped) do
    if e.ear ~= '' then
        call('PUBLISH', PREFIX .. e.ear, e.ticket .. ' 0 0')
    end
end

local last = max(now, num(call('ZRANGE', IN, -1, -1, 'WITHSCORES')[2] or 0),
    num(call('ZRANGE', GRAVES, -1, -1, 'WITHSCORES')[2] or 0), num(call('ZRANGE', DUE, -1, -1, 'WITHSCORES')[2] or 0))
if last + IDLE / 2 > reach then
    reach = last + IDLE
    call('HSET', DOOR, 'h', text(reach))
    call('PEXPIREAT', DOOR, fmt('%.0f', reach / 1000))
end
if lone and seated == 1 then
    local e = entrant(call('ZRANGE', IN, 0, 0)[1])
    call('DEL', IN, WHO, UNSURE)
    call('HSET', DOOR, 'a', table.concat({
        e.ticket, text(e.expires), text(e.fence), text(e.block), text(e.weight), text(e.lease), text(e.patience), e.ear,
        e.owner, e.note, text(e.place), text(e.since), e.sure and '1' or '0', text(e.passed),
    }, '\t'))
elseif not lone then
    local at = fmt('%.0f', reach / 1000)
    for i = 2, 8 do
        call('PEXPIREAT', KEYS[i], at)
    end
end
reply[#reply + 1] = lone and '1' or '0'
return reply
