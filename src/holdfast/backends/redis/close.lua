-- The doorman's step, part 6 of 6: the record is written, and then those whom it concerns are woken.
--
-- Purpose  Writes what has changed, sees to it that all keys last long enough, and wakes.
-- KEYS     as in record.lua
-- ARGV     as in command.lua
-- Returns  the reply: its name in small letters, its fields, and '1' if enter.lua and leave.lua will do next, else '0'
--
-- Publishes 'ticket place fence' to the ear of each who was let in and not heard, 'ticket 0 0' to each who was dropped,
-- and to the head of the line if it must look at another time than it thinks.

if several and seated <= 1 then -- the last one takes the seat at the door
    local last = call('ZRANGE', ROOM, 0, 0)[1]
    if last then
        lone = entrant(last)
        forget(last)
    end
    call('DEL', ROOM, UNSURE)
    several = false
end
in_use = (lined > 0 and 'l' or '') .. (several and 'r' or '') .. (buried > 0 and 'g' or '')

local words = {DOOR, 's', NOW}
local function set(field, value)
    words[#words + 1] = field
    words[#words + 1] = value
    if #words > 200 then
        call('HSET', unpack(words))
        words = {DOOR, 's', NOW}
    end
end
local limit = text(capacity) .. (fixed and '!' or '')
if limit ~= door[1] then set('c', limit) end
if fence ~= num(door[2]) then set('f', text(fence)) end
if places ~= num(door[3]) then set('p', text(places)) end
if lone then
    set('a', packed(lone, in_use == '' and 1 or 0))
elseif in_use ~= '' then
    set('a', '')
end
if several then set('u', text(used)) end
if several and (kept > 0 or door[10]) then set('k', text(kept)) end
if in_use ~= '' then set('g', in_use) end
for ticket, one in pairs(changed) do
    set(':' .. ticket, packed(one, 0))
end

-- The record must outlast its own last fence, too: after a clock has gone back, that is ahead of the time.
far = max(far, now, fence)
local idle = fixed and IDLE_IF_FIXED or IDLE
if far > reach or fixed ~= (set_before == '!') then
    reach = max(far, reach) + idle / 2
    set('h', text(reach))
    for _, key in ipairs(KEYS) do
        fresh[key] = true
    end
end
call('HSET', unpack(words))
if newcomer and door[6] and not lone and in_use == '' then
    call('HDEL', DOOR, 'a')
end
if newcomer and door[8] and in_use == '' then
    call('HDEL', DOOR, 'g')
end
local at = string.sub(text(reach + idle / 2), 1, -4) -- milliseconds
for key in pairs(fresh) do
    call('PEXPIREAT', key, at)
end

for _, one in ipairs(granted) do
    if one.ear ~= '' and not (one.sure or one.out or grave_of(one.ticket)) then
        call('PUBLISH', EARS .. one.ear, one.ticket .. ' ' .. text(one.place) .. ' ' .. text(one.fence))
    end
end
for _, one in ipairs(dropped) do
    if one.ear ~= '' then
        call('PUBLISH', EARS .. one.ear, one.ticket .. ' 0 0')
    end
end
-- A seat without a process ends by time alone: the head of the line has to be there at that instant.
if lined > 0 and (closes or (kept_before and kept > 0)) then
    local head = call('ZRANGE', LINE, 0, 0)[1]
    local one = entrant(head)
    if one.ear ~= '' and not (entering and head == asker) and (closes or head ~= head_before) then
        call('PUBLISH', EARS .. one.ear, head .. ' 0 0')
    end
end
reply[#reply + 1] = in_use == '' and '1' or '0'
return reply
