-- The doorman's step, part 3 of 6: how entrants are read and written.
--
-- Purpose  Entrants are read once, and written at the end if they have changed; the other keys are kept up at once.
-- KEYS     as in record.lua
-- ARGV     as in command.lua
-- Returns  nothing: close.lua does
--
-- A server whose memory is full refuses a script whose first write adds something. So those who are known here take
-- something away first: they can always leave, renew and poll.

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
