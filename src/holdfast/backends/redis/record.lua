-- The doorman's step, part 1 of 6: the record of one resource, as Redis keeps it, is opened.
--
-- Purpose  record.lua, hurry.lua, entrants.lua, line.lua, command.lua and close.lua, joined when they are loaded, are
--          one step: the rules of holdfast/doorman/rules.py on native structures, so that a step costs the same however
--          many stand in line or are inside. A test drives both with the same commands and compares every reply,
--          wake-up and record.
-- KEYS     all of one resource, in one slot
--   1 door    hash  c capacity · x '1' if set by Resize · f last fence · p last place · s seen
--                   h how far its TTL reaches · a the seat of the only one inside · u weight inside, if there are more
--                   g which of the other keys are in use: letters l (line, due), r (room, unsure), g (graves);
--                   if it is missing, none, and enter.lua and leave.lua will do
--                   :TICKET one in line, or one of several inside · #TICKET a grave
--   2 line    zset  ticket -> order; the head has the lowest
--   3 due     zset  ticket -> end of its patience
--   4 room    zset  ticket -> end of its seat; only while several are inside
--   5 unsure  zset  ticket -> the same, of those in room who have not been heard yet
--   6 graves  zset  ticket -> until
--   Entrants are arrays in MessagePack: ticket expires fence block weight lease patience ear owner note place since
--   sure passed; so are graves: span kind by reason. That takes a quarter of the time of text.
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

local function packed(e)
    return cmsgpack.pack({
        e.ticket, e.expires, e.fence, e.block, e.weight, e.lease, e.patience, e.ear, e.owner, e.note, e.place, e.since,
        e.sure and 1 or 0, e.passed,
    })
end

local function unpacked(seat)
    local e = cmsgpack.unpack(seat)
    return {
        ticket = e[1], expires = e[2], fence = e[3], block = e[4], weight = e[5], lease = e[6], patience = e[7],
        ear = e[8], owner = e[9], note = e[10], place = e[11], since = e[12], sure = e[13] == 1, passed = e[14],
    }
end

local function listeners(e)
    return call('PUBSUB', 'NUMSUB', EARS .. e.ear)[2]
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local NOW = text(now)

local door = call('HMGET', DOOR, 'c', 'x', 'f', 'p', 's', 'h', 'a', 'u', 'g', ':' .. TICKET)
local capacity, fixed, fence = num(door[1] or 0), door[2] == '1', num(door[3] or 0)
local places, seen, reach = num(door[4] or 0), num(door[5] or 0), num(door[6] or 0)
local idle = fixed and IDLE_IF_FIXED or IDLE
local in_use = door[9] or ''
local lined = match(in_use, 'l') and call('ZCARD', LINE) or 0
local seated = match(in_use, 'r') and call('ZCARD', ROOM) or 0
local buried = match(in_use, 'g') and call('ZCARD', GRAVES) or 0
local several = seated > 0 -- whether those inside are in room; else it is the lone one, or nobody
local lone = door[7] and unpacked(door[7])
local used = several and num(door[8]) or 0
if lone then
    seated, used = 1, lone.weight
end

-- The one whom the command is about, as it stands before the step; ahead: how many stand in line before it.
local subject = door[10] and unpacked(door[10]) or nil
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
