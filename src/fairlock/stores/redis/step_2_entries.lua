-- The lock step, part 2 of 5: find the entry that the command is about; functions that read and write entries.
--
-- Purpose  A waiter is written as soon as it has changed, a holder at the end.
-- KEYS     as in step_1_read.lua
-- ARGV     as in step_4_command.lua
-- Returns  nothing: step_5_write.lua returns the reply
--
-- Creating a function takes time, the more, the more variables of the script it uses. So what one place needs is not a
-- function, and functions that only rare steps need are created by these.

local function encode(e, alone)
    return pack(
        '<c1dddddBB', alone, e.fence, e.expires, e.since, e.poll_ttl, e.place, e.confirmed and 1 or 0, e.passed
    ) .. (e.rest or sub(e.text, E_BLOCK))
end

local function decode(text)
    local _, fence, expires, since, poll_ttl, place, confirmed, passed, block, weight, lease, ticket, listener =
        unpack_from('<c1dddddBBdddHc0Hc0', text)
    return {
        fence = fence, expires = expires, since = since, poll_ttl = poll_ttl, place = place, confirmed = confirmed == 1,
        passed = passed, block = block, weight = weight, lease = lease, ticket = ticket, listener = listener,
        text = text, -- rest, if it is there, replaces what hardly any step changes: everything from its block on
    }
end

local lone, lone_changed = saved_grant and saved_grant ~= '' and decode(saved_grant), false
local holder_count = 0
local several = used > 0 -- the holders are in HOLDERS; otherwise there is the lone holder, or none
if lone then
    holder_count, used, detached = 1, lone.weight, lone.listener == '' and 1 or 0
elseif several then
    holder_count = call('ZCARD', HOLDERS)
    if holder_count == 0 then
        several, used, detached = false, 0, 0
    end
end
if tombstone_count > 0 then
    tombstone_count = call('ZCARD', TOMBSTONES)
end

local function find_waiter(ticket)
    local at = call('ZSCORE', QUEUE, 't' .. ticket)
    local text = at and call('ZRANGEBYSCORE', QUEUE, at - TICKETS, at - TICKETS)[1]
    local e = text and decode(text)
    if e then
        e.order = at - TICKETS
    end
    return e
end

local acquiring = COMMAND == 'acquire'
local subject -- the entry that the command is about; it changes during the step
local known, changed = nil, nil -- of several holders by ticket: those that were read; those that must be written
if lone and lone.ticket == TICKET then
    subject = lone
elseif several and call('ZSCORE', HOLDERS, TICKET) then
    subject = decode(call('HGET', STATE, ':' .. TICKET))
    known = {[TICKET] = subject}
elseif queue_size > 0 then
    subject = find_waiter(TICKET)
end
local lease_before = subject and subject.lease or 0
local detached_before, head_before = detached > 0, nil
if detached_before and queue_size > 0 then
    local text = call('ZRANGE', QUEUE, 0, 0)[1]
    head_before = text and decode(text).ticket
end

-- A server whose memory is full refuses a script whose first write adds something. So a step of a ticket that is known
-- here removes something first: such a ticket can always release, renew and poll.

local removed = acquiring and (not subject or subject.fence == 0) -- no newcomer may get in by removing something
local grant_now = saved_grant -- the field a, as it is now
if not removed then
    call('HDEL', STATE, 'a')
    removed, grant_now = true, nil
end

local latest = 0 -- the latest time that was written into the state
local head -- the text of the first waiter; nil: it is as it was before the step; false: it must be read
local queue_ttl, holders_ttl = queue_size == 0, not several -- whether these may be new, and have no TTL yet

local function write_waiter(e) -- one that is in the queue already, joins it or returns to it
    if e.text then
        call('ZREM', QUEUE, e.text)
    end
    e.text = encode(e, '0')
    call('ZADD', QUEUE, e.order, e.text, TICKETS + e.order, 't' .. e.ticket, EXPIRIES + e.expires, 'x' .. e.ticket)
    latest, earliest, head = max(latest, e.expires), min(earliest, e.expires), false
end

local function refresh_waiter(e, position)
    e.poll_ttl = 3 * min(CONFIRM_WINDOW / 2 * (position + 1), SLEEP_CAP)
    e.expires = now + e.poll_ttl
    if e.passed == PASSED or e.passed == SILENT then
        e.passed = POLLED
    end
    write_waiter(e)
end

local is_request -- whether this tombstone is a request to release; nil: there are no tombstones before the step
if tombstone_count > 0 then
    function is_request(tombstone)
        return tombstone and sub(tombstone, 9, 15) == '\5\0asked'
    end
end

local read_holders -- those whose grants end until then ('+inf': all), in the order of their grants
if several or COMMAND == 'evict' then
    function read_holders(till)
        local found = several and call('ZRANGEBYSCORE', HOLDERS, '-inf', till) or {lone or nil}
        known = known or {}
        for i, ticket in ipairs(several and found or {}) do
            known[ticket] = known[ticket] or decode(call('HGET', STATE, ':' .. ticket))
            found[i] = known[ticket]
        end
        table.sort(found, function(a, b) return a.fence < b.fence end)
        return found
    end
end
