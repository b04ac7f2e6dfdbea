-- The doorman's step, part 1 of 6: the record of one resource, as Redis keeps it, is read.
--
-- Purpose  record.lua, hurry.lua, entrants.lua, line.lua, command.lua and close.lua, joined when they are loaded, are
--          one step: the rules of holdfast/doorman/rules.py on native structures, so that a step costs the same however
--          many stand in line or are inside. A test drives both with the same commands and compares every reply,
--          wake-up and record.
-- KEYS     all of one resource, in one slot
--   1 door    hash  c capacity, with ! behind it if set by Resize · f last fence · p last place · s seen
--                   h until when all that it says may last before the TTL of the keys must be made longer
--                   a the seat of the only one inside, or '' if there are others; if it is missing, there is nobody
--                   u weight inside, if there are more · k how many of these have no process behind them
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

local function listeners(ear)
    return call('PUBSUB', 'NUMSUB', EARS .. ear)[2]
end

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local door = call('HMGET', DOOR, 'c', 'f', 'p', 's', 'h', 'a', 'u', 'g', ':' .. TICKET, 'k')
