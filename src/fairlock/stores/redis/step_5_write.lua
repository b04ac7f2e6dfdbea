-- The lock step, part 5 of 5: write the state, then send the wake-ups.
--
-- Purpose  Writes what has changed, makes the TTL of all keys long enough, and publishes the wake-ups.
-- KEYS     as in step_1_read.lua
-- ARGV     as in step_4_command.lua
-- Returns  the reply: its name in lower case, its fields, and '1' if fast_acquire.lua and fast_release.lua work next,
--          else '0'. To a Renew or Detach with a fence that is granted while they work next: only the lease
--
-- Publishes 'ticket place fence' to the listener of every waiter with a new, unconfirmed grant, and 'ticket 0 0' to
-- every dropped client and to the head of the queue if it must poll at another time than its last reply named.

if several and holder_count <= 1 then -- the last holder moves from HOLDERS to the field a
    local last = call('ZRANGE', HOLDERS, 0, 0)[1]
    if last then
        lone, lone_changed = known and known[last] or decode(call('HGET', STATE, ':' .. last)), true
        if changed then
            changed[last] = nil
        end
        call('HDEL', STATE, ':' .. last)
    end
    call('DEL', HOLDERS, UNCONFIRMED)
    several, removed = false, true
end
if queue_size == 0 then
    head_expires, earliest = 0, 0
elseif head ~= nil then
    head = head or call('ZRANGE', QUEUE, 0, 0)[1]
    queue_size = head and queue_size or 0 -- or the server has evicted the queue
    head_expires = head and unpack_from('<d', head, E_EXPIRES) or 0
end

local alone = queue_size == 0 and not several and tombstone_count == 0 and '1' or '0'
if not removed or (alone == '1' and not lone and grant_now) then
    call('HDEL', STATE, 'a')
    grant_now = nil
end
local new_grant -- nil: the field a is right
if lone and (lone_changed or not grant_now or sub(grant_now, 1, 1) ~= alone) then
    new_grant, latest = encode(lone, alone), max(latest, lone.expires)
elseif not lone and alone == '0' and grant_now ~= '' then
    new_grant = ''
end
local unconfirmed_ttl = false
if several and changed then
    for ticket, holder in pairs(changed) do
        call('HSET', STATE, ':' .. ticket, encode(holder, '0'))
        latest, unconfirmed_ttl = max(latest, holder.expires), unconfirmed_ttl or not holder.confirmed
    end
end

-- The state must also outlast its last fence: after a clock has gone back, the fence is ahead of the time.
latest = max(latest, now, fence)
local idle, mark = IDLE, '3.'
if fixed then
    idle, mark = IDLE_IF_FIXED, '3!'
end
local all_ttl = latest > horizon or mark ~= mark_before
if all_ttl then
    horizon = max(latest, horizon) + idle / 2
end
numbers = mark .. pack(
    '<ddddddddddd', fence, now, last_place, queue_size, head_expires, earliest, capacity, horizon,
    several and used or 0, several and detached or 0, tombstone_count
)
if new_grant then
    call('HSET', STATE, 'n', numbers, 'a', new_grant)
else
    call('HSET', STATE, 'n', numbers)
end
if all_ttl or queue_ttl or marked or (several and (holders_ttl or unconfirmed_ttl)) then
    local expire_at = format('%d', (horizon + idle / 2) / 1000)
    if all_ttl then
        call('PEXPIREAT', STATE, expire_at)
    end
    if queue_size > 0 and (all_ttl or queue_ttl) then
        call('PEXPIREAT', QUEUE, expire_at)
    end
    if several and (all_ttl or holders_ttl) then
        call('PEXPIREAT', HOLDERS, expire_at)
    end
    if several and (all_ttl or unconfirmed_ttl) then
        call('PEXPIREAT', UNCONFIRMED, expire_at)
    end
    if tombstone_count > 0 and (all_ttl or marked) then
        call('PEXPIREAT', TOMBSTONES, expire_at)
    end
end

for i = 1, granted and #granted or 0 do
    local holder = granted[i]
    if holder.listener ~= '' and not (holder.confirmed or holder.removed)
        and not (COMMAND == 'evict' and call('HGET', STATE, '#' .. holder.ticket)) then
        local wakeup = format('%s %d %d', holder.ticket, holder.place, holder.fence)
        call('PUBLISH', LISTENERS .. holder.listener, wakeup)
    end
end
for i = 1, dropped and #dropped or 0 do
    local client = dropped[i]
    if client.listener ~= '' then
        call('PUBLISH', LISTENERS .. client.listener, client.ticket .. ' 0 0')
    end
end
-- A detached grant ends by time alone: the head of the queue must poll at that time.
if queue_size > 0 and (end_changed or (detached_before and detached > 0)) then
    head = head or call('ZRANGE', QUEUE, 0, 0)[1]
    local first = head and decode(head) or {listener = ''} -- '': the server has evicted the queue
    if first.listener ~= '' and not (acquiring and first.ticket == sender)
        and (end_changed or first.ticket ~= head_before) then
        call('PUBLISH', LISTENERS .. first.listener, first.ticket .. ' 0 0')
    end
end
if alone == '1' and expected_fence and reply[1] == 'granted' then
    return reply[3]
end
reply[#reply + 1] = alone
return reply
