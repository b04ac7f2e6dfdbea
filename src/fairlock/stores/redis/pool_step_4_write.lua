-- The pool step, part 4 of 4: hand over what else is due, send the wake-ups, and write the state.
--
-- Purpose  Notifies every waiter that was handed an item, a new head of the queue, and the watchers of an item that has
--          changed. A wake-up only makes its receiver poll; it carries no item.
-- KEYS     as in pool_step_1_read.lua
-- ARGV     as in pool_step_3_command.lua
-- Returns  the reply, its name first; then '1' if nothing waits, so that the pool_fast scripts work next, else '0'

hand_over()

local function notify(listener, ticket, fence)
    if listener ~= '' and ticket ~= sender then
        call('PUBLISH', LISTENERS .. listener, ticket .. ' 0 ' .. fence)
    end
end

for _, wakeup in ipairs(handed) do
    notify(wakeup.listener, wakeup.ticket, to_text(wakeup.fence))
end
local head = queued and call('ZRANGE', QUEUE, 0, 0)[1]
if head and (given_back or head ~= head_before) then
    local w = head ~= sender and read_waiter(head)
    notify(w and w.listener or '', head, '0')
end
for _, key in ipairs(watcher_count > 0 and changed or {}) do
    for _, member in ipairs(call('ZRANGEBYLEX', WATCHERS, '[' .. key .. '\0', '(' .. key .. '\1')) do
        local ticket = sub(member, #key + 2)
        local w = read_waiter(ticket)
        notify(w and w.listener or '', ticket, '0')
    end
end

in_use = (head and 'q' or '') .. (watcher_count > 0 and 'w' or '')
local empty = not has_item and call('ZCARD', DUE) == 0
if not empty or in_use ~= '' then
    call('HSET', ITEMS, 's', in_use .. NOW, 'p', to_text(last_place))
    if empty then
        for _, key in ipairs(KEYS) do
            call('PEXPIRE', key, IDLE)
        end
    elseif was_empty then
        for _, key in ipairs(KEYS) do
            call('PERSIST', key)
        end
    end
else
    call('DEL', unpack(KEYS))
end
reply[#reply + 1] = in_use == '' and '1' or '0'
return reply
