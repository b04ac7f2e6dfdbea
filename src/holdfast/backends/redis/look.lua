-- The record as it is. Changes nothing.
--
-- KEYS     1 door … 8 unsure, as in step.lua
-- Returns  door (a flat hash), tickets inside, tickets in line, who (a flat hash), graves with scores, why (a flat hash), time
return {
    redis.call('HGETALL', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, -1), redis.call('ZRANGE', KEYS[3], 0, -1),
    redis.call('HGETALL', KEYS[5]), redis.call('ZRANGE', KEYS[6], 0, -1, 'WITHSCORES'), redis.call('HGETALL', KEYS[7]),
    redis.call('TIME'),
}
