-- The pool's step, part 3 of 4: the order, by the table.
--
-- Purpose  As in rules.py and counter.py.
-- KEYS     as in pool.lua
-- ARGV     1 prefix of the ears' channels · 2 order · 3 and so on, its fields; a body that is empty stays as it is
--          put     3 first · 4 key · 5 body · and so on, two for each item
--          touch   3 key · 4 ticket · 5 fence · 6 body · 7 lease
--          give    3 key · 4 ticket · 5 fence · 6 after · 7 body
--          finish  3 key · 4 ticket · 5 fence · 6 body
--          remove  3 key · 4 ticket · 5 fence · 6 force
--          look    3 key
--          seek    3 ticket · 4 lease · 5 wait · 6 ear · 7 owner · 8 note · 9 key
--          quit    3 ticket · 4 lease · 5 key
-- Returns  nothing: pool_close.lua does

local reply
local changed = {} -- keys of items that are new, nobody's now, or there no more
local rests = false -- whether something was given back: it may be due sooner than the first in line knows

local function had(i) -- still, by who says so again
    i.score = max(i.score, now + num(ARGV[4]))
    call('ZADD', DUE, text(i.score), i.key)
    mine = i
end

if ORDER == 'put' then
    local count = 0
    for n = 4, #ARGV - 1, 2 do
        if not item(ARGV[n]) then
            put({
                key = ARGV[n], score = max(now - AGO, 0) + num(SUBJECT) + count, fence = 0, lease = 0, ticket = '',
                was = '', owner = '', note = '', body = ARGV[n + 1],
            })
            count = count + 1
            changed[count] = ARGV[n]
        end
    end
    there = call('ZCARD', DUE)
    reply = {'added', count}

elseif ORDER == 'quit' then
    out(asker)
    local i = has and item(has)
    if i and i.ticket == asker then
        i.score, i.ticket, i.lease, i.owner, i.note = now, '', 0, '', ''
        put(i)
        changed[1] = i.key
    end
    reply = {'gone'}

elseif seeking and ARGV[9] ~= '' then
    local i = item(ARGV[9])
    if not i then
        reply = {'absent'}
    elseif i.score == DONE then
        reply = {'finished'}
    elseif i.ticket == asker then
        had(i)
    elseif i.score > now then
        reply = {'busy', text(i.score - now)}
    else
        take(i, {ticket = asker, lease = num(ARGV[4]), owner = ARGV[7], note = ARGV[8]}, now + num(ARGV[4]))
        mine = i
    end
    if mine or ARGV[5] ~= '1' or reply[1] == 'finished' then
        out(asker)
    else
        local w = waiting(asker)
        if not w then
            places = places + 1
            w = {
                ticket = asker, lease = num(ARGV[4]), ear = ARGV[6], owner = ARGV[7], note = ARGV[8], place = places,
                since = now, key = ARGV[9],
            }
            watched = watched + call('ZADD', WATCH, 0, w.key .. '\0' .. asker)
        end
        stand(w, 0)
    end

elseif seeking then
    local i = has and item(has)
    local stands = waits and call('ZSCORE', LINE, asker)
    if i and i.ticket == asker then
        had(i)
        out(asker)
    else
        hand_over(true)
        i = not stands and first_due()
        if i then
            take(i, {ticket = asker, lease = num(ARGV[4]), owner = ARGV[7], note = ARGV[8]}, now + num(ARGV[4]))
            mine = i
        end
    end
    if mine then
        -- he has it
    elseif ARGV[5] ~= '1' and not stands then
        reply = {'nothing'}
    else
        local w = stands and waiting(asker)
        if not w then
            places = places + 1
            w = {
                ticket = asker, lease = num(ARGV[4]), ear = ARGV[6], owner = ARGV[7], note = ARGV[8], place = places,
                since = now, key = '',
            }
            lined = lined + call('ZADD', LINE, text(places), asker)
        end
        local ahead = call('ZRANK', LINE, asker)
        stand(w, ahead)
        local retry = sleep_span(ahead)
        local coming = ahead == 0 and call('ZRANGEBYSCORE', DUE, '(' .. NOW, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
        reply = {'waiting', ahead, text(w.place), text(coming and min(retry, coming - now) or retry)}
    end

else
    local i = item(SUBJECT)
    local same = i and i.fence == num(ARGV[5] or -1)
    local owns = same and i.ticket == ARGV[4]
    local before = i and i.ticket
    if ORDER == 'look' then
        reply = i and {'looked', text(i.score), text(i.fence), i.ticket, text(i.lease), i.owner, i.note, i.body}
            or {'looked'}
    elseif ORDER == 'remove' then
        if i and i.ticket ~= '' and i.score > now and not owns and ARGV[6] ~= '1' then
            reply = {'busy', text(i.score - now)}
        else
            if i then
                drop(i)
                changed[1] = i.key
            end
            reply = {'removed', i and 1 or 0}
        end
    elseif not i then
        reply = {'lost'}
    elseif i.score == DONE then
        reply = {ORDER == 'finish' and same and 'finished' or 'lost'}
    elseif i.ticket == '' then
        reply = {ORDER == 'give' and same and 'given' or 'lost'}
    elseif not owns then
        reply = {'lost'}
    else
        local body = ARGV[ORDER == 'give' and 7 or 6]
        if body ~= '' then
            i.body = body
        end
        if ORDER == 'touch' then
            i.lease = max(num(ARGV[7]) or 0, i.lease) -- it may only grow
            i.score = now + i.lease
            reply = {'touched', text(i.lease)}
        elseif ORDER == 'give' then
            i.score, i.ticket, i.lease, i.owner, i.note = now + num(ARGV[6]), '', num(ARGV[6]), '', ''
            reply = {'given'}
            rests = true
        else
            i.score, i.ticket = DONE, ''
            reply = {'finished'}
        end
        put(i)
        if i.ticket ~= before then
            changed[1] = i.key
        end
    end
end

if mine then
    reply = {'taken', text(mine.fence), text(mine.score - now), mine.body, mine.key}
end
