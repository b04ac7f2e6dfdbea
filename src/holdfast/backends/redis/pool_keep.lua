-- Touch, give back or finish what is mine, while nobody waits: with two keys and five calls.
--
-- Purpose  A short cut without rules of its own; anything else is left to the full step.
-- KEYS     1 items · 2 due, as in pool.lua
--   1 items   hash  = : s are written, g is read
--   2 due     zset  its score
-- ARGV     1 touch, give or finish · 2 key · 3 ticket · 4 fence · 5 after · 6 body; empty: as it is
-- Returns  the lease, or nothing: send the full step

local found = redis.call('HMGET', KEYS[1], '=' .. ARGV[2], 'g', 's')
local row = found[1]
if not row or found[2] then
    return false
end
local fence, lease, ticket, owner, note, at = string.match(row, '^(%d+) (%d+) (%S*) (%d+) (%d+) ()')
if ticket == '' or ticket ~= ARGV[3] or fence ~= ARGV[4] then
    return false
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now < tonumber(found[3] or 0) then
    return false
end
local NOW, score, rest = string.format('%d', now), '-1', nil
if ARGV[1] == 'touch' then
    redis.call('HDEL', KEYS[1], 'g') -- it is not there; but who deletes first may write though the memory is full
    score = string.format('%d', now + lease)
    rest = ARGV[6] ~= '' and string.sub(row, 1, at + owner + note - 1)
elseif ARGV[1] == 'give' then
    redis.call('HDEL', KEYS[1], ':' .. ticket)
    score = string.format('%d', now + ARGV[5])
    rest = fence .. ' ' .. ARGV[5] .. '  0 0 '
else
    redis.call('HDEL', KEYS[1], ':' .. ticket)
    local labels = string.sub(row, at, at + owner + note - 1)
    rest = table.concat({fence, lease, '', owner, note, labels}, ' ')
end
redis.call('ZADD', KEYS[2], score, ARGV[2])
if rest then
    local body = ARGV[6] ~= '' and ARGV[6] or string.sub(row, at + owner + note)
    redis.call('HSET', KEYS[1], '=' .. ARGV[2], rest .. body, 's', NOW)
else
    redis.call('HSET', KEYS[1], 's', NOW)
end
return tonumber(lease)
