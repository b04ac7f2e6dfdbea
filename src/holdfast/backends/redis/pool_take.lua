-- Any item that is due, while nobody waits: the commonest step of a pool with two keys and five calls.
--
-- Purpose  A short cut without rules of its own; anything else is left to the full step.
-- KEYS     1 items · 2 due, as in pool.lua
--   1 items   hash  = : s are written, g is read
--   2 due     zset  the lowest that is due
-- ARGV     1 ticket · 2 lease · 3 owner · 4 note
-- Returns  key, fence, body; or nothing: send the full step

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local NOW = string.format('%d', now)
local key = redis.call('ZRANGEBYSCORE', KEYS[2], '0', NOW, 'LIMIT', 0, 1)[1]
if not key then
    return false
end
local found = redis.call('HMGET', KEYS[1], '=' .. key, ':' .. ARGV[1], 'g', 's')
local row = found[1]
if not row or found[2] or found[3] or now < tonumber(found[4] or 0) then
    return false
end
local last, before, owner, note, at = string.match(row, '^(%d+) %d+ (%S*) (%d+) (%d+) ()')
local body = string.sub(row, at + owner + note)
local fence = NOW
if now <= tonumber(last) then
    fence = string.format('%d', last + 1)
end
if before ~= '' then
    redis.call('HDEL', KEYS[1], ':' .. before)
end
redis.call('ZADD', KEYS[2], string.format('%d', now + ARGV[2]), key)
local head = table.concat({fence, ARGV[2], ARGV[1], #ARGV[3], #ARGV[4], ARGV[3]}, ' ')
redis.call('HSET', KEYS[1], '=' .. key, head .. ARGV[4] .. body, ':' .. ARGV[1], key, 's', NOW)
return {key, fence, body}
