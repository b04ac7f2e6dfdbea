-- The lock step, part 1 of 6: read the state of one resource.
--
-- Purpose  The six parts, step_1_read.lua to step_6_write.lua, are joined into one script when they are loaded. The
--          script applies the rules of fairlock/rules/locks/step.py to native Redis structures, so that a step costs
--          the same however many waiters and holders there are. A test sends the same commands to both and compares
--          every reply, wake-up and state.
-- KEYS     all keys of one resource, in one slot
--   1 state          hash  c capacity, followed by ! if Resize set it · f last fence · p last place · s last step
--                    h horizon: all keys have a TTL that outlasts everything in this state that ends before h
--                    a the grant of the only holder; '' if anything else is in use; missing if nothing is
--                    u used weight, if there are several holders · d how many of these are detached (have no process)
--                    i the other keys in use, as letters: q (queue, waiter_expiry), h (holders, unconfirmed), t
--                    (tombstones); missing if none is
--                    :TICKET a waiter, or one of several holders · #TICKET a tombstone
--   2 queue          zset  ticket -> order; the head of the queue has the lowest
--   3 waiter_expiry  zset  ticket -> end of its poll_ttl
--   4 holders        zset  ticket -> end of its grant; only while there are several holders
--   5 unconfirmed    zset  ticket -> the same, for those in holders that have not confirmed their grant
--   6 tombstones     zset  ticket -> until
--   Entries are arrays in MessagePack: alone ticket fence expires since block weight lease poll_ttl listener owner note
--   place confirmed passed; so are tombstones: span kind by reason. MessagePack takes a quarter of the time of text.
--   alone is 1 in the grant of the only holder while no other key is in use: only then fast_release.lua works.
--   confirmed is 2 in a grant that fast_acquire.lua has written: no step has changed the state since, so s is out of
--   date, and the grant's since counts instead.
-- ARGV     1 prefix of the listeners' channels · 2 command, in lower case · 3 its first field, nearly always the ticket
-- Returns  nothing: step_6_write.lua returns the reply
--
-- Times are microseconds. Numbers become text by %.0f because `..` would write 1.79e+15. A server that evicts keys may
-- have removed any of these: what is missing counts as never written. Code that is used in one place only is not a
-- function: creating a function costs half a microsecond in every step, called or not, which is more than most calls.

local STATE, QUEUE, WAITER_EXPIRY, HOLDERS, UNCONFIRMED, TOMBSTONES = unpack(KEYS)
local LISTENERS, COMMAND, TICKET = unpack(ARGV, 1, 3)

-- The positions of each command's fields in ARGV, as in messages.py.
local ACQUIRE_CAPACITY, ACQUIRE_WEIGHT, ACQUIRE_LEASE, ACQUIRE_WAIT, ACQUIRE_FAIR = 4, 5, 6, 7, 8
local ACQUIRE_BLOCK, ACQUIRE_LISTENER, ACQUIRE_OWNER, ACQUIRE_NOTE = 9, 10, 11, 12
local RELEASE_LEAVE_TOMBSTONE, RELEASE_FENCE, RELEASE_LEASE = 4, 5, 6
local RENEW_FENCE, RENEW_WEIGHT, RENEW_LEASE = 4, 5, 6
local DETACH_FENCE, DETACH_LEASE, DETACH_CLOSED = 4, 5, 6
local EVICT_BY, EVICT_REASON, EVICT_AT_ONCE = 4, 5, 6
local RESIZE_CAPACITY = 3

-- The positions of the fields of an entry.
local E_ALONE, E_TICKET, E_FENCE, E_EXPIRES, E_SINCE, E_BLOCK, E_WEIGHT, E_LEASE = 1, 2, 3, 4, 5, 6, 7, 8
local E_POLL_TTL, E_LISTENER, E_OWNER, E_NOTE, E_PLACE, E_CONFIRMED, E_PASSED = 9, 10, 11, 12, 13, 14, 15

local FRESH, PASSED, SILENT, HEARD = 0, 1, 2, 3
local CONFIRM_WINDOW, SLEEP_CAP, SWEEP = 2000000, 10000000, 16
local IDLE, IDLE_IF_FIXED = 600000000, 31622400000000 -- how long a state is kept after everything in it has ended

local call, num, format, match = redis.call, tonumber, string.format, string.match
local min, max = math.min, math.max

local function count_subscribers(listener)
    return call('PUBSUB', 'NUMSUB', LISTENERS .. listener)[2]
end

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local saved_capacity, saved_fence, saved_place, saved_seen, saved_horizon, saved_grant, saved_used, saved_in_use,
    saved_detached, saved_entry
    = unpack(call('HMGET', STATE, 'c', 'f', 'p', 's', 'h', 'a', 'u', 'i', 'd', ':' .. TICKET))
