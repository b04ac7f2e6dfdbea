-- The doorman's step, part 2 of 6: the two steps of a lock that many want, into the line and out, in a hurry.
--
-- Purpose  A short cut without rules of its own, as in rules.py, in half of the time: only where one holds all of the
--          room, others stand in line, nobody is buried, nobody has expired, and the clock has not gone back. All else
--          goes on below. Entrants are read and written as the arrays that they are.
-- KEYS     as in record.lua
-- ARGV     as in command.lua
-- Returns  what close.lua does, or goes on

do
    local limit, lone = num(door[1]), door[8] == 'l' and door[6] ~= '' and cmsgpack.unpack(door[6])
    if lone and lone[7] == limit and lone[4] > now and now >= door[4] + 0 then
        local lasts = door[5] - now -- what is written here must not last longer
        if COMMAND == 'enter' and not door[9] and lone[2] ~= TICKET and ARGV[7] == '1' and ARGV[4] == door[1]
            and ARGV[5] + 0 >= 1 and ARGV[5] + 0 <= limit and ARGV[6] + 0 >= WINDOW and lasts >= 3 * SLEEP_CAP then
            local due, head = call('ZRANGE', DUE, 0, 0, 'WITHSCORES'), call('ZRANGE', LINE, 0, 0)[1]
            if head and due[2] and due[2] + 0 > now then
                local soon, lined, place = due[2] + 0, call('ZCARD', LINE), door[3] + 1
                if due[1] ~= head then
                    soon = cmsgpack.unpack(call('HGET', DOOR, ':' .. head))[4]
                end
                soon = lone[14] > 0 and soon or min(soon, lone[4])
                local patience = 3 * min(WINDOW / 2 * (lined + 1), SLEEP_CAP)
                call('ZADD', LINE, place, TICKET)
                call('ZADD', DUE, now + patience, TICKET)
                call('HSET', DOOR, 's', now, 'p', place, ':' .. TICKET, cmsgpack.pack({
                    0, TICKET, 0, now + patience, now, ARGV[5] == door[1] and max(ARGV[9] + 0, 1) or 1, ARGV[5] + 0,
                    ARGV[6] + 0, patience, ARGV[10], ARGV[11], ARGV[12], place, 0, FRESH,
                }))
                return {'waiting', lined, place, soon - now, '0'}
            end
        elseif COMMAND == 'leave' and lone[2] == TICKET and ARGV[4] == '0' and not num(ARGV[6]) and door[2] + 0 < now
            and (ARGV[5] == '' or (ARGV[5] + 0 >= lone[3] and ARGV[5] + 0 < lone[3] + lone[6])) then
            local due, line = call('ZRANGE', DUE, 0, 0, 'WITHSCORES'), call('ZRANGE', LINE, 0, 1)
            local head = line[1] and due[2] and due[2] + 0 > now and cmsgpack.unpack(call('HGET', DOOR, ':' .. line[1]))
            if head and head[7] == limit and lasts >= max(3 * SLEEP_CAP, head[6]) and head[15] ~= SILENT
                and (head[10] ~= '' or lone[10] ~= '')
                and (head[10] == '' or head[15] == HEARD or listeners(head[10]) > 0) then
                local alone, told = not line[2], line[1] .. format(' %.0f %.0f', head[13], now)
                head[1], head[3], head[5], head[9] = alone and 1 or 0, now, now, head[4] - now
                head[4], head[14], head[15] = now + min(head[8], WINDOW), 0, FRESH
                call('HDEL', DOOR, ':' .. line[1], alone and 'g' or 'a')
                call('ZREM', LINE, line[1])
                call('ZREM', DUE, line[1])
                call('HSET', DOOR, 's', now, 'f', now + head[6] - 1, 'a', cmsgpack.pack(head))
                if head[10] ~= '' then
                    call('PUBLISH', EARS .. head[10], told)
                end
                return {'left', '1', alone and '1' or '0'}
            end
        end
    end
end
