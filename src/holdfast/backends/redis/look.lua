-- The record as it is. Changes nothing.
--
-- Purpose  What `ls` and `show` read, in one moment.
-- KEYS     1 door · 2 line · 3 due · 4 room · 5 unsure · 6 graves, as in record.lua
--   1 door    hash  all of it
--   2 line    zset  the order
--   4 room    zset  who of those at the door is inside
--   6 graves  zset  all of it
-- ARGV     none
-- Returns  door (flat), tickets in line, tickets in room, graves with scores (flat), time

return {
    redis.call('HGETALL', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, -1), redis.call('ZRANGE', KEYS[4], 0, -1),
    redis.call('ZRANGE', KEYS[6], 0, -1, 'WITHSCORES'), redis.call('TIME'),
}
