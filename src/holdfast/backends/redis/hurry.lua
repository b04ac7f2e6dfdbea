-- The doorman's step, part 2 of 6: the two steps of a lock that many want, into the line and out, in a hurry.
--
-- Purpose  A short cut without rules of its own, as in rules.py, in two thirds of the time: only where one holds all of
--          the room, nobody is buried, nobody has expired, and the clock has not gone back. All else goes on below.
-- KEYS     as in record.lua
-- ARGV     as in command.lua
-- Returns  what close.lua does, or goes on

local head -- of the line, if this is such a lock
if in_use == 'l' and lined > 0 and lone and lone.weight == capacity and lone.expires > now and now >= seen then
    local first_due = call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2]
    if first_due and num(first_due) > now then
        local first = call('ZRANGE', LINE, 0, 0)[1]
        head = unpacked(call('HGET', DOOR, ':' .. first))
    end
end
local lasts_long = head and reach >= now + max(3 * SLEEP_CAP, head.block) -- also with what is written here

if lasts_long and COMMAND == 'enter' and not subject and ARGV[7] == '1' and ARGV[4] == size
    and num(ARGV[5]) >= 1 and num(ARGV[5]) <= capacity and num(ARGV[6]) >= WINDOW then
    local block, patience = num(ARGV[9]), 3 * min(WINDOW / 2 * (lined + 1), SLEEP_CAP)
    local soon = lone.sure and head.expires or min(head.expires, lone.expires)
    local place = text(places + 1)
    call('ZADD', LINE, place, TICKET)
    call('ZADD', DUE, text(now + patience), TICKET)
    call('HSET', DOOR, 's', NOW, 'p', place, ':' .. TICKET, cmsgpack.pack({
        0, TICKET, 0, now + patience, now, ARGV[5] == size and max(block, 1) or 1, num(ARGV[5]), num(ARGV[6]), patience,
        ARGV[10], ARGV[11], ARGV[12], places + 1, 0, FRESH,
    }))
    return {'waiting', text(lined), place, text(soon - now), '0'}
end

if lasts_long and COMMAND == 'leave' and subject == lone and ARGV[4] == '0' and fence < now
    and (ARGV[5] == '' or (num(ARGV[5]) >= lone.fence and num(ARGV[5]) < lone.fence + lone.block))
    and head.weight == capacity and head.passed ~= SILENT
    and (head.ear == '' or head.passed == HEARD or listeners(head) > 0) then
    call('HDEL', DOOR, ':' .. head.ticket, lined == 1 and 'g' or 'a')
    call('ZREM', LINE, head.ticket)
    call('ZREM', DUE, head.ticket)
    call('HSET', DOOR, 's', NOW, 'f', text(now + head.block - 1), 'a', cmsgpack.pack({
        lined == 1 and 1 or 0, head.ticket, now, now + min(head.lease, WINDOW), now, head.block, head.weight,
        head.lease, head.expires - now, head.ear, head.owner, head.note, head.place, 0, FRESH,
    }))
    if head.ear ~= '' then
        call('PUBLISH', EARS .. head.ear, head.ticket .. ' ' .. text(head.place) .. ' ' .. NOW)
    end
    return {'left', '1', lined == 1 and '1' or '0'}
end
