-- The pool's step, part 4 of 4: what else is due goes to the line, the wake-ups, and what is kept of it all.
--
-- Purpose  Wakes those who were given something, whoever is first now and was not, and those who watch an item that has
--          changed. A wake-up says where to look, no more.
-- KEYS     as in pool.lua
-- ARGV     as in pool_order.lua
-- Returns  the reply, its name first; then '1' if nobody waits, so that the short cuts will do next, else '0'

hand_over()

local function wake(ear, ticket, fence)
    if ear ~= '' and ticket ~= asker then
        call('PUBLISH', EARS .. ear, ticket .. ' 0 ' .. fence)
    end
end

for _, each in ipairs(handed) do
    wake(each[1], each[2], text(each[3]))
end
if lined > 0 then
    local head = call('ZRANGE', LINE, 0, 0)[1]
    if rests or head ~= head_before then
        local w = waiting(head)
        wake(w and w.ear or '', head, '0')
    end
end
for _, key in ipairs(watched > 0 and changed or {}) do
    for _, member in ipairs(call('ZRANGEBYLEX', WATCH, '[' .. key .. '\0', '(' .. key .. '\1')) do
        local ticket = sub(member, #key + 2)
        local w = waiting(ticket)
        wake(w and w.ear or '', ticket, '0')
    end
end

in_use = (lined > 0 and 'l' or '') .. (watched > 0 and 'w' or '')
if there > 0 or in_use ~= '' then
    call('HSET', ITEMS, 's', in_use .. NOW, 'p', text(places))
    if there == 0 then
        for _, key in ipairs(KEYS) do
            call('PEXPIRE', key, IDLE)
        end
    elseif was_there == 0 then
        for _, key in ipairs(KEYS) do
            call('PERSIST', key)
        end
    end
elseif was_there > 0 or found[1] then
    call('DEL', unpack(KEYS))
end
reply[#reply + 1] = in_use == '' and '1' or '0'
return reply
