-- The lock step, part 6 of 6: write the state, then send the wake-ups.
--
-- Purpose  Writes what has changed, makes the TTL of all keys long enough, and publishes the wake-ups.
-- KEYS     as in step_1_read.lua
-- ARGV     as in step_5_command.lua
-- Returns  the reply: its name in lower case, its fields, and '1' if fast_acquire.lua and fast_release.lua work next,
--          else '0'
--
-- Publishes 'ticket place fence' to the listener of every waiter with a new, unconfirmed grant, and 'ticket 0 0' to
-- every dropped client and to the head of the queue if it must poll at another time than its last reply named.

if several and holder_count <= 1 then -- the last holder moves from HOLDERS to the field a
    local last = call('ZRANGE', HOLDERS, 0, 0)[1]
    if last then
        lone = read_entry(last)
        forget(last)
    end
    call('DEL', HOLDERS, UNCONFIRMED)
    several = false
end
in_use = (queue_size > 0 and 'q' or '') .. (several and 'h' or '') .. (tombstone_count > 0 and 't' or '')

local updates = {STATE, 's', NOW}
local function set(field, value)
    updates[#updates + 1] = field
    updates[#updates + 1] = value
    if #updates > 200 then
        call('HSET', unpack(updates))
        updates = {STATE, 's', NOW}
    end
end
local limit = to_text(capacity) .. (fixed and '!' or '')
if limit ~= saved_capacity then set('c', limit) end
if fence ~= num(saved_fence) then set('f', to_text(fence)) end
if last_place ~= num(saved_place) then set('p', to_text(last_place)) end
if lone then
    set('a', pack_entry(lone, in_use == '' and 1 or 0))
elseif in_use ~= '' then
    set('a', '')
end
if several then set('u', to_text(used)) end
if several and (detached > 0 or saved_detached) then set('d', to_text(detached)) end
if in_use ~= '' then set('i', in_use) end
for ticket, entry in pairs(changed) do
    set(':' .. ticket, pack_entry(entry, 0))
end

-- The state must also outlast its last fence: after a clock has gone back, the fence is ahead of the time.
latest = max(latest, now, fence)
local idle = fixed and IDLE_IF_FIXED or IDLE
if latest > horizon or fixed ~= (fixed_mark_before == '!') then
    horizon = max(latest, horizon) + idle / 2
    set('h', to_text(horizon))
    for _, key in ipairs(KEYS) do
        needs_ttl[key] = true
    end
end
call('HSET', unpack(updates))
if is_new and saved_grant and not lone and in_use == '' then
    call('HDEL', STATE, 'a')
end
if is_new and saved_in_use and in_use == '' then
    call('HDEL', STATE, 'i')
end
local expire_at = string.sub(to_text(horizon + idle / 2), 1, -4) -- milliseconds
for key in pairs(needs_ttl) do
    call('PEXPIREAT', key, expire_at)
end

for _, holder in ipairs(granted) do
    if holder.listener ~= '' and not (holder.confirmed or holder.removed or read_tombstone(holder.ticket)) then
        local wakeup = holder.ticket .. ' ' .. to_text(holder.place) .. ' ' .. to_text(holder.fence)
        call('PUBLISH', LISTENERS .. holder.listener, wakeup)
    end
end
for _, client in ipairs(dropped) do
    if client.listener ~= '' then
        call('PUBLISH', LISTENERS .. client.listener, client.ticket .. ' 0 0')
    end
end
-- A detached grant ends by time alone: the head of the queue must poll at that time.
if queue_size > 0 and (end_changed or (detached_before and detached > 0)) then
    local ticket = call('ZRANGE', QUEUE, 0, 0)[1]
    local head = read_entry(ticket)
    if head.listener ~= '' and not (acquiring and ticket == sender) and (end_changed or ticket ~= head_before) then
        call('PUBLISH', LISTENERS .. head.listener, ticket .. ' 0 0')
    end
end
reply[#reply + 1] = in_use == '' and '1' or '0'
return reply
