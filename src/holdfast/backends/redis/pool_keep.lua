-- Touch, give back or finish what is mine, while nobody waits: with two keys and five calls, one more for a new body.
--
-- Purpose  A short cut without rules of its own; anything else is left to the full step.
-- KEYS     1 items · 2 due, as in pool.lua
--   1 items   hash  = : s # are written
--   2 due     zset  its score
-- ARGV     1 touch, give or finish · 2 colon and ticket · 3 fence, a space, key · 4 key · 5 after · 6 body; empty: as
--          it is
-- Returns  the lease, or nothing: send the full step

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local NOW = string.format('%d', now)
local found = redis.call('HMGET', KEYS[1], ARGV[2], '=' .. ARGV[4], 's')
if found[1] ~= ARGV[3] or (found[3] or '') > NOW then -- the clock went back; or a letter: somebody waits
    return false
end
local fence, lease = string.match(found[2], '^(%d+)%S* (%d+)')
if ARGV[1] == 'touch' then
    redis.call('HDEL', KEYS[1], 's') -- written again: but who deletes first may write though the memory is full
    redis.call('ZADD', KEYS[2], string.format('%d', now + lease), ARGV[4])
    redis.call('HSET', KEYS[1], 's', NOW)
elseif ARGV[1] == 'give' then
    redis.call('HDEL', KEYS[1], ARGV[2])
    redis.call('ZADD', KEYS[2], string.format('%d', now + ARGV[5]), ARGV[4])
    redis.call('HSET', KEYS[1], '=' .. ARGV[4], fence .. ': ' .. ARGV[5] .. ' 0 0 ', 's', NOW)
else
    redis.call('HDEL', KEYS[1], ARGV[2])
    redis.call('ZADD', KEYS[2], '-1', ARGV[4])
    redis.call('HSET', KEYS[1], 's', NOW)
end
if ARGV[6] ~= '' then
    redis.call('HSET', KEYS[1], '#' .. ARGV[4], ARGV[6])
end
return tonumber(lease)
