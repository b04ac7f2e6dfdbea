-- The doorman's step, part 5 of 6: the command, the second admitting, and the answer.
--
-- Purpose  As in rules.py, in the same order and under the same names.
-- KEYS     as in record.lua
-- ARGV     1 prefix of the ears' channels · 2 command, in small letters · 3… its fields as in commands.py, '' = None
--          enter   3 ticket · 4 capacity · 5 weight · 6 lease · 7 wait · 8 fair · 9 block · 10 ear · 11 owner · 12 note
--          leave   3 ticket · 4 bury · 5 fence · 6 lease
--          renew   3 ticket · 4 fence · 5 weight · 6 lease
--          keep    3 ticket · 4 fence · 5 lease · 6 closed
--          evict   3 ticket · 4 by · 5 reason · 6 at_once
--          resize  3 capacity
-- Returns  nothing: close.lua does

local GRAVE = 60000000

local function bury(ticket, lease, kind, by, reason)
    if not grave_of(ticket) then
        local span = max(GRAVE, lease)
        buried = buried + 1
        far = max(far, now + span)
        call('HSET', DOOR, '#' .. ticket, cmsgpack.pack({span, kind, by, reason}))
        put(GRAVES, now + span, ticket)
    end
end

local e = entrant(asker)
local is_inside = e and e.fence > 0
local joined = false
local reply -- none: an Enter that is answered after the second admitting
local dropped = {}
local closes = false -- whether a Keep has just set the end of a seat

if entering then
    local wanted, weight = num(ARGV[4]), num(ARGV[5])
    wanted = (fixed or wanted == 0) and capacity or wanted
    local grave = grave_of(asker)
    if grave then
        reply = {'gone', unpack(grave, 2)}
    elseif is_inside then
        e.sure = true
        e.expires = now + e.lease
        sit(e)
    elseif e then
        -- it keeps its place
    elseif wanted ~= capacity and (seated > 0 or lined > 0) then
        reply = {'mismatch', text(capacity)}
    elseif weight < 1 or weight > wanted then
        reply = {'mismatch', text(wanted)}
    else
        capacity = wanted
        e = {
            ticket = asker, weight = weight, lease = num(ARGV[6]), ear = ARGV[10], owner = ARGV[11], note = ARGV[12],
            block = weight == wanted and max(num(ARGV[9]), 1) or 1, place = 0, since = now, fence = 0, sure = false,
            patience = patience(lined), expires = now + patience(lined), passed = FRESH,
        }
        local fits = weight <= capacity - used
        local stays = ARGV[7] == '1'
        if fits and (lined == 0 or ARGV[8] == '0') then
            let_in(e)
        else
            if fits and not stays then -- one who only tries may pass a line of silent and deaf ones
                local first = next_in_line()
                stays = not first or is_deaf(first)
            end
            if stays then
                places = places + 1
                e.place = places
                put(LINE, places, asker)
                lined = lined + 1
                joined = true
                stand(e)
            else
                reply = {'refused'}
            end
        end
    end

elseif COMMAND == 'leave' then
    local of = num(ARGV[5]) -- nil: any
    local let_in_just_now = is_inside and e.fence > before
    if is_inside and not let_in_just_now and of and (of < e.fence or of >= e.fence + e.block) then
        reply = {'left', '0'} -- the seat of another incarnation
    elseif is_inside and not let_in_just_now and num(ARGV[6]) and e.lease > num(ARGV[6]) then
        reply = {'left', '0'} -- another client has extended it
    else
        local held = is_inside and not let_in_just_now and not grave_of(asker)
        if is_inside then
            out_of_room(e)
        elseif e then
            out_of_line(asker)
        end
        if ARGV[4] == '1' then
            bury(asker, lease_before, 'left', '', '')
        end
        reply = {'left', held and '1' or '0'}
    end

elseif COMMAND == 'renew' or COMMAND == 'keep' then
    local grave = grave_of(asker)
    if grave then
        reply = {'notinside', unpack(grave, 2)}
    elseif not is_inside or (ARGV[4] ~= '' and num(ARGV[4]) ~= e.fence) then
        reply = {'notinside'}
    else
        if COMMAND == 'keep' then
            closes = e.ear ~= '' or e.expires ~= now + num(ARGV[5])
            kept = kept + (e.ear ~= '' and 1 or 0)
            e.lease, e.ear, e.owner = num(ARGV[5]), '', ARGV[6] == '1' and '' or e.owner
        else
            used = used - e.weight
            e.weight = max(1, min(num(ARGV[5]) or e.weight, e.weight)) -- it may only fall
            used = used + e.weight
            e.lease = max(num(ARGV[6]) or 0, e.lease) -- it may only grow
        end
        e.sure = true
        e.expires = now + e.lease
        sit(e)
        reply = {'admitted', text(e.fence), text(e.lease)}
    end

elseif COMMAND == 'evict' then
    reply = {'done'}
    for _, one in ipairs(TICKET == '' and seats('+inf') or {entrant(TICKET) or nil}) do
        reply[#reply + 1] = one.ticket
        dropped[#dropped + 1] = one
        if one.fence == 0 then
            out_of_line(one.ticket)
        elseif ARGV[6] == '1' then
            out_of_room(one)
        end
        bury(one.ticket, one.lease, 'evicted', ARGV[4], ARGV[5])
    end
    if TICKET ~= '' then
        bury(TICKET, lease_before, 'evicted', ARGV[4], ARGV[5])
    end

else -- resize
    capacity, fixed = num(ARGV[3]) or capacity, ARGV[3] ~= ''
    reply = {'done'}
    for _, ticket in ipairs(lined > 0 and call('ZRANGE', LINE, 0, -1) or {}) do
        local one = entrant(ticket)
        if one.weight > capacity then
            reply[#reply + 1] = ticket
            dropped[#dropped + 1] = one
            out_of_line(ticket)
        end
    end
end

admit()

-- Answer Enter.

if not reply and e.fence > 0 then
    reply = {'admitted', text(e.fence), text(e.expires - now)}
elseif not reply then
    local place = joined and lined - 1 or call('ZRANK', LINE, asker)
    if e.patience ~= patience(place) then -- it must fit the place that is told, not the one before the step
        heard(e, place)
    end
    local soon -- when those directly ahead expire, and whoever was let in and not heard yet
    if place > 0 then
        soon = entrant(call('ZRANGE', LINE, 0, 0)[1]).expires
        if several then
            soon = min(soon, num(call('ZRANGE', UNSURE, 0, 0, 'WITHSCORES')[2]) or soon)
        elseif lone and not lone.sure then
            soon = min(soon, lone.expires)
        end
    else
        soon = lone and lone.expires or several and num(call('ZRANGE', ROOM, 0, 0, 'WITHSCORES')[2]) or now
    end
    soon = soon - now
    if e.lease < WINDOW then
        soon = min(soon, math.floor(e.lease / 2) * (place + 1))
    end
    reply = {'waiting', text(place), text(e.place), text(max(soon, 1))}
end
