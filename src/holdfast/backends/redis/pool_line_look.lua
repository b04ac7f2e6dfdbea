-- Who waits for items of a pool. Changes nothing.
--
-- Purpose  What is shown of a line, in one moment.
-- KEYS     1 items · 2 ends, as in pool.lua
--   1 items   hash  s, p and those who wait
--   2 ends    zset  all of it
-- ARGV     none
-- Returns  s and p ('0' if missing), and of each who waits: ticket, end, lease, ear, owner, note, place, since,
--          patience, key

local ends = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
local found = {}
for n = 1, #ends, 2 do
    local row = redis.call('HGET', KEYS[1], '>' .. ends[n])
    if row then
        found[#found + 1] = {ends[n], ends[n + 1], unpack(cmsgpack.unpack(row))}
    end
end
local values = redis.call('HMGET', KEYS[1], 's', 'p')
return {string.match(values[1] or '0', '%d+'), values[2] or '0', found}
