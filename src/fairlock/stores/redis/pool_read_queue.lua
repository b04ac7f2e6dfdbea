-- Read the waiters of a pool. Changes nothing.
--
-- Purpose  A consistent snapshot of the queue and the watchers.
-- KEYS     1 items · 2 waiter_expiry, as in pool_step_1_read.lua
--   1 items          hash  s, p and the waiters
--   2 waiter_expiry  zset  all of it
-- ARGV     none
-- Returns  s and p ('0' if missing), and of each waiter: ticket, expires, lease, listener, owner, note, place, since,
--          poll_ttl, key

local ends = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
local waiters = {}
for n = 1, #ends, 2 do
    local ticket, expires = ends[n], ends[n + 1]
    local packed = redis.call('HGET', KEYS[1], '>' .. ticket)
    if packed then
        waiters[#waiters + 1] = {ticket, expires, unpack(cmsgpack.unpack(packed))}
    end
end
local seen, last_place = unpack(redis.call('HMGET', KEYS[1], 's', 'p'))
return {string.match(seen or '0', '%d+'), last_place or '0', waiters}
