-- The lock step, part 3 of 6: decode the state; functions that read and write entries.
--
-- Purpose  An entry is read at most once, and written at the end if it has changed. Sorted sets are written at once.
-- KEYS     as in step_1_read.lua
-- ARGV     as in step_5_command.lua
-- Returns  nothing: step_6_write.lua returns the reply
--
-- A server whose memory is full refuses a script whose first write adds something. So a step of a ticket that is known
-- here removes something first: such a ticket can always release, renew and poll.

local function to_text(number)
    return format('%.0f', number)
end

local function pack_entry(e, alone)
    return cmsgpack.pack({
        alone, e.ticket, e.fence, e.expires, e.since, e.block, e.weight, e.lease, e.poll_ttl, e.listener, e.owner,
        e.note, e.place, e.confirmed and 1 or 0, e.passed,
    })
end

local function unpack_entry(packed)
    local _, ticket, fence, expires, since, block, weight, lease, poll_ttl, listener, owner, note, place, confirmed,
        passed = unpack(cmsgpack.unpack(packed))
    return {
        ticket = ticket, fence = fence, expires = expires, since = since, block = block, weight = weight, lease = lease,
        poll_ttl = poll_ttl, listener = listener, owner = owner, note = note, place = place, confirmed = confirmed > 0,
        passed = passed,
    }, confirmed == 2
end

local NOW = to_text(now)
local digits, fixed_mark_before = match(saved_capacity or '0', '(%d+)(!?)')
local capacity, fixed, fence = num(digits), fixed_mark_before == '!', num(saved_fence or 0)
local last_place, seen, horizon = num(saved_place or 0), num(saved_seen or 0), num(saved_horizon or 0)
local in_use = saved_in_use or ''
local queue_size = match(in_use, 'q') and call('ZCARD', QUEUE) or 0
local holder_count = match(in_use, 'h') and call('ZCARD', HOLDERS) or 0
local tombstone_count = match(in_use, 't') and call('ZCARD', TOMBSTONES) or 0
local several = holder_count > 0 -- the holders are in HOLDERS; otherwise there is the lone holder, or none
local used, detached = several and num(saved_used) or 0, several and num(saved_detached or 0) or 0
local lone
if saved_grant and saved_grant ~= '' then
    local untouched
    lone, untouched = unpack_entry(saved_grant)
    holder_count, used, detached = 1, lone.weight, lone.listener == '' and 1 or 0
    seen = untouched and lone.since or seen
end

-- The entry that the command is about, as it is before the step; ahead: how many waiters are ahead of it.
local subject = saved_entry and unpack_entry(saved_entry) or nil
local ahead
if lone and lone.ticket == TICKET then
    subject = lone
elseif subject and subject.fence == 0 then
    ahead = queue_size > 0 and call('ZRANK', QUEUE, TICKET)
    subject = ahead and subject
elseif subject then
    subject = several and call('ZSCORE', HOLDERS, TICKET) and subject
end
local detached_before, head_before = detached > 0, detached > 0 and queue_size > 0 and call('ZRANGE', QUEUE, 0, 0)[1]
local lease_before = subject and subject.lease or 0

local is_new = COMMAND == 'acquire' and not subject
if not is_new then
    call('HDEL', STATE, 'a', 'i') -- written again at the end
end
if not saved_place and call('EXISTS', QUEUE, WAITER_EXPIRY, HOLDERS, UNCONFIRMED, TOMBSTONES) > 0 then
    call('DEL', QUEUE, WAITER_EXPIRY, HOLDERS, UNCONFIRMED, TOMBSTONES) -- left by a state that the server has evicted
end

local known, changed = {[TICKET] = subject or false}, {} -- entries by ticket; those that must be written
if lone then
    known[lone.ticket] = lone
end
local latest = 0 -- the latest time that was written into the state
local needs_ttl = {} -- keys that may be new and have no TTL yet
local has_ttl = {[QUEUE] = queue_size > 0, [HOLDERS] = several} -- keys that certainly have one

local function add_to(key, at, ticket)
    call('ZADD', key, to_text(at), ticket)
    needs_ttl[key] = not has_ttl[key] or nil
end

local function read_entry(ticket)
    local e = known[ticket]
    if e == nil then
        local packed = call('HGET', STATE, ':' .. ticket)
        e = packed and unpack_entry(packed)
        known[ticket] = e
    end
    return e
end

local function forget(ticket)
    known[ticket] = false
    changed[ticket] = nil
    call('HDEL', STATE, ':' .. ticket)
end

local function save(e)
    known[e.ticket] = e
    changed[e.ticket] = e
    latest = max(latest, e.expires)
end

local function save_waiter(e)
    save(e)
    add_to(WAITER_EXPIRY, e.expires, e.ticket)
end

local function remove_waiter(ticket)
    queue_size = queue_size - call('ZREM', QUEUE, ticket)
    has_ttl[QUEUE] = queue_size > 0
    call('ZREM', WAITER_EXPIRY, ticket)
    forget(ticket)
end

local function save_one_of_several(e)
    save(e)
    add_to(HOLDERS, e.expires, e.ticket)
    if e.confirmed then
        call('ZREM', UNCONFIRMED, e.ticket)
    else
        add_to(UNCONFIRMED, e.expires, e.ticket)
    end
end

local function save_holder(e)
    if lone and lone ~= e then
        save_one_of_several(lone)
        lone, several = nil, true
    end
    if several then
        save_one_of_several(e)
    else
        lone = e
        known[e.ticket] = e
        latest = max(latest, e.expires)
    end
end

local function remove_holder(e)
    holder_count = holder_count - 1
    has_ttl[HOLDERS] = has_ttl[HOLDERS] and holder_count > 0
    used = used - e.weight
    detached = detached - (e.listener == '' and 1 or 0)
    e.removed = true
    if e == lone then
        lone = nil
        known[e.ticket] = false
    else
        call('ZREM', HOLDERS, e.ticket)
        call('ZREM', UNCONFIRMED, e.ticket)
        forget(e.ticket)
    end
end

local function read_holders(till) -- those whose grants end until then ('+inf': all), in the order of their grants
    if lone then
        return (till == '+inf' or lone.expires <= now) and {lone} or {}
    end
    local found = several and call('ZRANGEBYSCORE', HOLDERS, '-inf', till) or {}
    for i, ticket in ipairs(found) do
        found[i] = read_entry(ticket)
    end
    table.sort(found, function(a, b) return a.fence < b.fence end)
    return found
end
