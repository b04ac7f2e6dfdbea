-- The doorman's step, part 1 of 6: the record of one resource, as Redis keeps it, is opened.
--
-- Purpose  record.lua, hurry.lua, entrants.lua, line.lua, command.lua and close.lua, joined when they are loaded, are
--          one step: the rules of holdfast/doorman/rules.py on native structures, so that a step costs the same however
--          many stand in line or are inside. A test drives both with the same commands and compares every reply,
--          wake-up and record.
-- KEYS     all of one resource, in one slot
--   1 door    hash  c capacity, with ! behind it if set by Resize · f last fence · p last place · s seen
--                   h until when all that it says may last before the TTL of the keys must be made longer
--                   a the seat of the only one inside, or '' if there are others; if it is missing, there is nobody
--                   u weight inside, if there are more
--                   g which of the other keys are in use: letters l (line, due), r (room, unsure), g (graves);
--                   if it is missing, none
--                   :TICKET one in line, or one of several inside · #TICKET a grave
--   2 line    zset  ticket -> order; the head has the lowest
--   3 due     zset  ticket -> end of its patience
--   4 room    zset  ticket -> end of its seat; only while several are inside
--   5 unsure  zset  ticket -> the same, of those in room who have not been heard yet
--   6 graves  zset  ticket -> until
--   Entrants are arrays in MessagePack: alone ticket fence expires since block weight lease patience ear owner note
--   place sure passed; so are graves: span kind by reason. That takes a quarter of the time of text.
--   alone is 1 in a seat at the door while nothing else is in use: then enter.lua and leave.lua will do. sure is 2 in a
--   seat that enter.lua has written: nothing has happened since, so s is out of date, and means its since.
-- ARGV     1 prefix of the ears' channels · 2 command, in small letters · 3 its first field, nearly always the ticket
-- Returns  nothing: close.lua does
--
-- Times are microseconds. Numbers become text by %.0f, for `..` would write 1.79e+15. A server that evicts keys may
-- have taken any of these: what is missing was never there. What happens in one place only is not a function: making
-- one costs half a microsecond in every step, used or not, which is more than most calls.

local DOOR, LINE, DUE, ROOM, UNSURE, GRAVES = unpack(KEYS)
local EARS, COMMAND, TICKET = ARGV[1], ARGV[2], ARGV[3]
local FRESH, PASSED, SILENT, HEARD = 0, 1, 2, 3
local WINDOW, SLEEP_CAP, SWEEP = 2000000, 10000000, 16
local IDLE, IDLE_IF_FIXED = 600000000, 31622400000000 -- how long a record is kept after the end of all that it says

local call, num, format, match = redis.call, tonumber, string.format, string.match
local min, max = math.min, math.max

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

local function listeners(e)
    return call('PUBSUB', 'NUMSUB', EARS .. e.ear)[2]
end

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local NOW = text(now)

local door = call('HMGET', DOOR, 'c', 'f', 'p', 's', 'h', 'a', 'u', 'g', ':' .. TICKET)
local size, set_before = match(door[1] or '0', '(%d+)(!?)')
local capacity, fixed, fence = num(size), set_before == '!', num(door[2] or 0)
local places, seen, reach = num(door[3] or 0), num(door[4] or 0), num(door[5] or 0)
local in_use = door[8] or ''
local lined = match(in_use, 'l') and call('ZCARD', LINE) or 0
local seated = match(in_use, 'r') and call('ZCARD', ROOM) or 0
local buried = match(in_use, 'g') and call('ZCARD', GRAVES) or 0
local several = seated > 0 -- whether those inside are in room; else it is the lone one, or nobody
local used = several and num(door[7]) or 0
local lone
if door[6] and door[6] ~= '' then
    local untouched
    lone, untouched = unpacked(door[6])
    seated, used = 1, lone.weight
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
local lease_before = subject and subject.lease or 0
