-- Read the whole state of one resource. Changes nothing.
--
-- Purpose  A consistent snapshot for `ls` and `show`.
-- KEYS     1 state · 2 queue · 3 holders · 4 unconfirmed · 5 tombstones, as in step_1_read.lua
--   1 state       hash  all of it
--   2 queue       zset  the entries, which have the lowest scores
--   3 holders     zset  the tickets of several holders
--   5 tombstones  zset  all of it
-- ARGV     none
-- Returns  the numbers of the state ('' if there is none), the entries of the holders and of the waiters, the
--          tombstones (ticket, until, its text), the time

local state = {}
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
    state[flat[i]] = flat[i + 1]
end
local numbers, grant = state['n'] or '', state['a'] or ''
if #flat > 0 and string.sub(numbers, 1, 1) ~= '3' then
    return {err = 'FORMAT ' .. (state['n'] and string.sub(numbers, 1, 1) or '2')}
end

local holders, waiters, tombstones = {}, {}, {}
if grant ~= '' then
    holders[1] = grant
elseif numbers ~= '' then
    for _, ticket in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
        holders[#holders + 1] = state[':' .. ticket]
    end
end
if numbers ~= '' then
    waiters = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(1000000000000000')
    local scores = redis.call('ZRANGE', KEYS[5], 0, -1, 'WITHSCORES')
    for i = 1, #scores, 2 do
        local text = state['#' .. scores[i]]
        if text then
            tombstones[#tombstones + 1] = {scores[i], scores[i + 1], text}
        end
    end
end
return {numbers, holders, waiters, tombstones, redis.call('TIME')}
