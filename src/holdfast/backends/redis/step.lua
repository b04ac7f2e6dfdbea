-- The second half of the doorman's step: the commands, and the step itself at the end.
--
-- Purpose  The rules of holdfast/doorman/rules.py, in the same order and under the same names. record.lua and line.lua
--          come before this; loading joins the three. A test drives them and rules.py with the same commands and
--          compares every reply, every wake-up and every record.
-- KEYS     as in record.lua
-- ARGV     1 prefix of the ears' channels · 2 command, in small letters · 3… its fields as in commands.py, '' = None
--          enter   3 ticket · 4 capacity · 5 weight · 6 lease · 7 wait · 8 fair · 9 block · 10 ear · 11 owner · 12 note
--          renew   3 ticket · 4 fence · 5 weight
--          leave   3 ticket · 4 bury · 5 fence
--          keep    3 ticket · 4 fence · 5 lease
--          evict   3 ticket · 4 by · 5 reason · 6 at_once
--          resize  3 capacity
-- Returns  the reply: its name in small letters, its fields, and '1' if enter.lua and leave.lua will do next, else '0'
--
-- Publishes 'ticket place fence' to the ear of each who was let in and not heard, 'ticket 0 0' to each who was dropped:
-- last of all, when the record is written.

-- The commands

local dropped = {}

local function bury(ticket, lease, kind, by, reason)
    if not why(ticket) then
        local span = max(GRAVE, lease)
        buried = buried + 1
        far = max(far, now + span)
        call('HSET', DOOR, '#' .. ticket, table.concat({text(span), kind, by, reason}, '\t'))
        put(GRAVES, now + span, ticket)
    end
end

local function would_pass_all(weight)
    if weight > room() then
        return false
    end
    local first = next_in_line()
    return not first or is_deaf(first)
end

local function enter(wanted, weight, lease, wait, fair, block, ear, owner, note)
    local grave = why(asker)
    if grave then
        return {'gone', unpack(grave)}
    end
    local e = entrant(asker)
    if e and e.fence > 0 then
        e.sure = true
        e.expires = now + e.lease
        sit(e)
        return
    elseif e then
        return
    end
    if wanted == 0 then
        wanted = capacity
    end
    if wanted ~= capacity and (seated > 0 or lined > 0 or fixed) then
        return {'mismatch', text(capacity)}
    elseif weight < 1 or weight > wanted then
        return {'mismatch', text(wanted)}
    end
    capacity = wanted
    local span = patience(lined)
    e = {
        ticket = asker, weight = weight, lease = lease, patience = span, ear = ear, owner = owner, note = note,
        block = weight == wanted and max(block, 1) or 1, place = 0, since = now, expires = now + span, fence = 0,
        sure = false, passed = FRESH,
    }
    if (lined == 0 or not fair) and weight <= room() then
        return let_in(e)
    elseif not wait and not would_pass_all(weight) then
        return {'refused'}
    end
    places = places + 1
    e.place = places
    put(LINE, places, asker)
    lined = lined + 1
    stand(e)
end

local function retry_in(place, lease)
    local soon
    if place > 0 then
        soon = entrant(call('ZRANGE', LINE, 0, 0)[1]).expires
        if several then
            soon = min(soon, first_of(UNSURE) or soon)
        elseif lone and not lone.sure then
            soon = min(soon, lone.expires)
        end
    else
        soon = lone and lone.expires or several and first_of(ROOM) or now
    end
    soon = soon - now
    if lease < WINDOW then
        soon = min(soon, math.floor(lease / 2) * (place + 1))
    end
    return max(soon, 1)
end

local function answer_enter()
    local e = entrant(asker)
    if e.fence > 0 then
        return {'admitted', text(e.fence), text(e.expires - now)}
    end
    local place = call('ZRANK', LINE, asker)
    if e.patience ~= patience(place) then
        heard(e, place)
    end
    return {'waiting', text(place), text(e.place), text(retry_in(place, e.lease))}
end

local function leave(bury_it, of)
    local e = entrant(asker)
    local held = false
    if e and e.fence > 0 then
        local let_in_just_now = e.fence > before
        if not (let_in_just_now or of == '' or (e.fence <= num(of) and num(of) < e.fence + e.block)) then
            return {'left', '0'} -- the seat of another incarnation
        end
        out_of_room(e)
        held = not let_in_just_now and not why(asker)
    elseif e then
        out_of_line(asker)
    end
    if bury_it then
        bury(asker, lease_before, 'left', '', '')
    end
    return {'left', held and '1' or '0'}
end

local function renew(of, weight, lease)
    local grave = why(asker)
    if grave then
        return {'notinside', unpack(grave)}
    end
    local e = entrant(asker)
    if not e or e.fence == 0 or not (of == '' or num(of) == e.fence) then
        return {'notinside'}
    end
    if lease then
        e.lease, e.ear = lease, ''
    elseif weight ~= '' then
        used = used - e.weight
        e.weight = max(1, min(num(weight), e.weight)) -- it may only fall
        used = used + e.weight
    end
    e.sure = true
    e.expires = now + e.lease
    sit(e)
    return {'admitted', text(e.fence), text(e.lease)}
end

local function evict(ticket, by, reason, at_once)
    local them = ticket == '' and seats('+inf') or {entrant(ticket) or nil}
    local there = {'done'}
    for _, e in ipairs(them) do
        there[#there + 1] = e.ticket
        dropped[#dropped + 1] = e
        if e.fence == 0 then
            out_of_line(e.ticket)
        elseif at_once then
            out_of_room(e)
        end
        bury(e.ticket, e.lease, 'evicted', by, reason)
    end
    if ticket ~= '' then
        bury(ticket, lease_before, 'evicted', by, reason)
    end
    return there
end

local function resize(to)
    capacity, fixed = to, true
    local there = {'done'}
    for _, ticket in ipairs(lined > 0 and call('ZRANGE', LINE, 0, -1) or {}) do
        local e = entrant(ticket)
        if e.weight > to then
            there[#there + 1] = ticket
            dropped[#dropped + 1] = e
            out_of_line(ticket)
        end
    end
    return there
end

local function obey()
    if entering then
        return enter(num(ARGV[4]), num(ARGV[5]), num(ARGV[6]), ARGV[7] == '1', ARGV[8] == '1', num(ARGV[9]), ARGV[10],
            ARGV[11], ARGV[12])
    elseif COMMAND == 'leave' then
        return leave(ARGV[4] == '1', ARGV[5])
    elseif COMMAND == 'renew' then
        return renew(ARGV[4], ARGV[5])
    elseif COMMAND == 'keep' then
        return renew(ARGV[4], '', num(ARGV[5]))
    elseif COMMAND == 'evict' then
        return evict(ARGV[3], ARGV[4], ARGV[5], ARGV[6] == '1')
    end
    return resize(num(ARGV[3]))
end

local function wake(e, place, first)
    if e.ear ~= '' then
        call('PUBLISH', EARS .. e.ear, e.ticket .. ' ' .. text(place) .. ' ' .. text(first))
    end
end

-- The step

if now < seen then
    turn_back_the_clock()
end
if entering and ahead then
    heard(subject, ahead)
end
sweep()
admit()
local reply = obey()
admit()
reply = reply or answer_enter()
close()
for _, e in ipairs(granted) do
    if not (e.sure or e.out or why(e.ticket)) then
        wake(e, e.place, e.fence)
    end
end
for _, e in ipairs(dropped) do
    wake(e, 0, 0)
end
reply[#reply + 1] = in_use == '' and '1' or '0'
return reply
