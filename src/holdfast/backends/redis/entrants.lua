-- The doorman's step, part 3 of 6: the record is opened, and how entrants are read and written.
--
-- Purpose  Entrants are read once, and written at the end if they have changed; the other keys are kept up at once.
-- KEYS     as in record.lua
-- ARGV     as in command.lua
-- Returns  nothing: close.lua does
--
-- A server whose memory is full refuses a script whose first write adds something. So those who are known here take
-- something away first: they can always leave, renew and poll.

local function text(number)
    return format('%.0f', number)
end

local function packed(e, alone)
    return cmsgpack.pack({
        alone, e.ticket, e.fence, e.expires, e.since, e.block, e.weight, e.lease, e.patience, e.ear, e.owner, e.note,
        e.place, e.sure and 1 or 0, e.passed,
    })
end

local function unpacked(seat)
    local e = cmsgpack.unpack(seat)
    return {
        ticket = e[2], fence = e[3], expires = e[4], since = e[5], block = e[6], weight = e[7], lease = e[8],
        patience = e[9], ear = e[10], owner = e[11], note = e[12], place = e[13], sure = e[14] > 0, passed = e[15],
    }, e[14] == 2
end

local NOW = text(now)
local size, set_before = match(door[1] or '0', '(%d+)(!?)')
local capacity, fixed, fence = num(size), set_before == '!', num(door[2] or 0)
local places, seen, reach = num(door[3] or 0), num(door[4] or 0), num(door[5] or 0)
local in_use = door[8] or ''
local lined = match(in_use, 'l') and call('ZCARD', LINE) or 0
local seated = match(in_use, 'r') and call('ZCARD', ROOM) or 0
local buried = match(in_use, 'g') and call('ZCARD', GRAVES) or 0
local several = seated > 0 -- whether those inside are in room; else it is the lone one, or nobody
local used, kept = several and num(door[7]) or 0, several and num(door[10] or 0) or 0
local lone
if door[6] and door[6] ~= '' then
    local untouched
    lone, untouched = unpacked(door[6])
    seated, used, kept = 1, lone.weight, lone.ear == '' and 1 or 0
    seen = untouched and lone.since or seen
end

-- The one whom the command is about, as it stands before the step; ahead: how many stand in line before it.
local subject = door[9] and unpacked(door[9]) or nil
local ahead
if lone and lone.ticket == TICKET then
    subject = lone
elseif subject and subject.fence == 0 then
    ahead = lined > 0 and call('ZRANK', LINE, TICKET)
    subject = ahead and subject
elseif subject then
    subject = several and call('ZSCORE', ROOM, TICKET) and subject
end
local kept_before, head_before = kept > 0, kept > 0 and lined > 0 and call('ZRANGE', LINE, 0, 0)[1]
local lease_before = subject and subject.lease or 0

local newcomer = COMMAND == 'enter' and not subject
if not newcomer then
    call('HDEL', DOOR, 'a', 'g') -- written again at the end
end
if not door[3] and call('EXISTS', LINE, DUE, ROOM, UNSURE, GRAVES) > 0 then
    call('DEL', LINE, DUE, ROOM, UNSURE, GRAVES) -- no step was made at this door, so they are of one that was evicted
end

local known, changed = {[TICKET] = subject or false}, {}
if lone then
    known[lone.ticket] = lone
end
local far = 0 -- the furthest time that was written into the record
local fresh = {} -- keys that may be new and have no end yet
local lasts = {[LINE] = lined > 0, [ROOM] = several} -- those that surely have one

local function put(key, at, ticket)
    call('ZADD', key, text(at), ticket)
    fresh[key] = not lasts[key] or nil
end

local function entrant(ticket)
    local e = known[ticket]
    if e == nil then
        local line = call('HGET', DOOR, ':' .. ticket)
        e = line and unpacked(line)
        known[ticket] = e
    end
    return e
end

local function forget(ticket)
    known[ticket] = false
    changed[ticket] = nil
    call('HDEL', DOOR, ':' .. ticket)
end

local function keep(e)
    known[e.ticket] = e
    changed[e.ticket] = e
    far = max(far, e.expires)
end

local function stand(e) -- one in line, new there or changed
    keep(e)
    put(DUE, e.expires, e.ticket)
end

local function out_of_line(ticket)
    lined = lined - call('ZREM', LINE, ticket)
    lasts[LINE] = lined > 0
    call('ZREM', DUE, ticket)
    forget(ticket)
end

local function in_room(e)
    keep(e)
    put(ROOM, e.expires, e.ticket)
    if e.sure then
        call('ZREM', UNSURE, e.ticket)
    else
        put(UNSURE, e.expires, e.ticket)
    end
end

local function sit(e) -- one inside, new there or changed
    if lone and lone ~= e then
        in_room(lone)
        lone, several = nil, true
    end
    if several then
        in_room(e)
    else
        lone = e
        known[e.ticket] = e
        far = max(far, e.expires)
    end
end

local function out_of_room(e)
    seated = seated - 1
    lasts[ROOM] = lasts[ROOM] and seated > 0
    used = used - e.weight
    kept = kept - (e.ear == '' and 1 or 0)
    e.out = true
    if e == lone then
        lone = nil
        known[e.ticket] = false
    else
        call('ZREM', ROOM, e.ticket)
        call('ZREM', UNSURE, e.ticket)
        forget(e.ticket)
    end
end

local function seats(till) -- those whose seats end until then, in the order in which they came in
    if lone then
        return (till == '+inf' or lone.expires <= now) and {lone} or {}
    end
    local found = several and call('ZRANGEBYSCORE', ROOM, '-inf', till) or {}
    for i, ticket in ipairs(found) do
        found[i] = entrant(ticket)
    end
    table.sort(found, function(a, b) return a.fence < b.fence end)
    return found
end
