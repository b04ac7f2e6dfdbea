-- The lock step, part 1 of 5: read the state of one resource.
--
-- Purpose  The five parts, step_1_read.lua to step_5_write.lua, are joined into one script when they are loaded. The
--          script applies the rules of fairlock/rules/locks/step.py to native Redis structures, so that a step costs
--          the same however many waiters and holders there are. A test sends the same commands to both and compares
--          every reply, wake-up and state.
--          The commonest steps are made here, by parts of fast_acquire.lua and fast_release.lua; only the others need
--          what follows.
-- KEYS     all keys of one resource, in one slot
--   1 state        hash  n the numbers of the state · a the grant of the only holder; '' if anything else is in use;
--                  missing if nothing is · :TICKET one of several holders · #TICKET a tombstone
--   2 queue        zset  three members for each waiter: its entry -> order, tTICKET -> TICKETS + order, xTICKET ->
--                  EXPIRIES + end of its poll_ttl; so the entries come first, in the order of the queue
--   3 holders      zset  ticket -> end of its grant; only while there are several holders
--   4 unconfirmed  zset  ticket -> the same, for those in holders that have not confirmed their grant
--   5 tombstones   zset  ticket -> until
--   All values are of fixed width, but for texts: d is a number of 8 bytes, B of one, H of two, and a text follows its
--   size, H. Short values are fast: Lua hashes every byte of each string that it makes.
--   n: the format (the digit 3), a mark (! if Resize set the capacity, else a dot), then eleven d: fence (the last
--   one) seen (the last step) place (the last one; -1: no full step was made yet) queue (its length) head (end of the
--   poll_ttl of the first waiter) earliest (no poll_ttl of a waiter ends before) capacity horizon (all keys outlast
--   everything in this state that ends before it) used (the weight of several holders) detached (how many of these have
--   no process) tombstones (how many).
--   An entry: alone (the digit 1 in the grant of the only holder while no other key is in use: only then
--   fast_release.lua works, else 0), five d: fence expires since poll_ttl place, two B: confirmed passed, three d:
--   block weight lease, then its texts: ticket listener owner note.
--   A tombstone: its span as d, then the texts kind by reason. One of kind asked, until FOREVER, is a request to
--   release: it bars nothing and is removed with its holder.
-- ARGV     1 command, in lower case · 2 its first field, nearly always the ticket. See step_4_command.lua
-- Returns  the reply of fast_acquire.lua or fast_release.lua; or nothing: step_5_write.lua returns the reply
--
-- Times are microseconds. Numbers become text by %d because `..` would write 1.79e+15, and because Redis takes long to
-- write a number as the argument of a call (%.17g). A server that evicts keys may have removed any of these: what is
-- missing counts as never written. The commonest steps of a contended lock make few calls: to join the queue four
-- (TIME, HMGET, ZADD, HSET), to release and grant to the head seven (TIME, HMGET, ZRANGE, PUBSUB, ZREM, HSET, PUBLISH).

local STATE, QUEUE, HOLDERS, UNCONFIRMED, TOMBSTONES = unpack(KEYS)
local COMMAND, TICKET = unpack(ARGV, 1, 2)
local LISTENERS = 'fairlock:listener:' -- the channels of all listeners begin like this

-- The positions of each command's fields in ARGV, as in messages.py; those of Acquire as in encoding.py.
local ACQUIRE_OPTIONS, ACQUIRE_ENTRY = 2, 3
local RELEASE_LEAVE_TOMBSTONE, RELEASE_FENCE, RELEASE_LEASE = 3, 4, 5
local RENEW_FENCE, RENEW_WEIGHT, RENEW_LEASE = 3, 4, 5
local DETACH_FENCE, DETACH_LEASE, DETACH_CLOSED = 3, 4, 5
local EVICT_BY, EVICT_REASON, EVICT_AT_ONCE = 3, 4, 5
local ASK_BY, ASK_REASON = 3, 4
local RESIZE_CAPACITY = 2

-- Where fields begin: the numbers of the state; an entry.
local N_FENCE, E_EXPIRES, E_PASSED, E_BLOCK = 3, 10, 43, 44

local TICKETS, EXPIRIES = 2000000000000000, 4000000000000000 -- the scores of tTICKET and xTICKET begin here
local FOREVER = 9000000000000000
local FRESH, PASSED, SILENT, POLLED = 0, 1, 2, 3
local CONFIRM_WINDOW, SLEEP_CAP, SWEEP = 2000000, 10000000, 16
local IDLE, IDLE_IF_FIXED = 600000000, 31622400000000 -- how long a state is kept after everything in it has ended
local call, num, format, sub = redis.call, tonumber, string.format, string.sub
local pack, unpack_from = struct.pack, struct.unpack
local min, max = math.min, math.max

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local numbers, grant = unpack(call('HMGET', STATE, 'n', 'a'))
if numbers and sub(numbers, 1, 1) ~= '3' then
    return {err = 'FORMAT ' .. sub(numbers, 1, 1)}
end

-- The commonest steps: from here on as in the scripts that have these names.

local wanted, waits, fair, block, weight, lease, tail -- the fields of an Acquire; tail: the last ones of its entry
if COMMAND == 'acquire' then
    wanted, waits, fair = unpack_from('<dBB', ARGV[ACQUIRE_OPTIONS])
    tail = ARGV[ACQUIRE_ENTRY]
    block, weight, lease, TICKET = unpack_from('<dddHc0', tail)
    FAST_ACQUIRE()
elseif COMMAND == 'release' and ARGV[RELEASE_LEAVE_TOMBSTONE] == '0' and ARGV[RELEASE_LEASE] == '' then
    local own, released_fence = pack('<Hc0', #TICKET, TICKET), ARGV[RELEASE_FENCE]
    FAST_RELEASE()
end

-- All others.

local fence, seen, last_place, queue_size, head_expires, earliest = 0, 0, -1, 0, 0, FOREVER
local fixed, capacity, horizon, used, detached, tombstone_count = false, 0, 0, 0, 0, 0
local saved_grant, mark_before = grant, numbers and sub(numbers, 1, 2)
if numbers then
    fence, seen, last_place, queue_size, head_expires, earliest, capacity, horizon, used, detached, tombstone_count =
        unpack_from('<ddddddddddd', numbers, N_FENCE)
    fixed = mark_before == '3!'
    if queue_size == 0 then
        earliest = FOREVER
    end
elseif call('EXISTS', STATE) == 1 then
    return {err = 'FORMAT 2'}
end
if last_place < 0 then
    last_place = 0
    if call('EXISTS', QUEUE, HOLDERS, UNCONFIRMED, TOMBSTONES) > 0 then
        call('DEL', QUEUE, HOLDERS, UNCONFIRMED, TOMBSTONES) -- left by a state that the server has evicted
    end
end
