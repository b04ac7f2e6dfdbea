-- The record as it is. Changes nothing.
--
-- Purpose  What `ls` and `show` read, in one moment.
-- KEYS     1 door · 2 line · 3 due · 4 room · 5 unsure · 6 graves, as in record.lua
--   1 door    hash  all of it
--   2 line    zset  the order
--   4 room    zset  who of those at the door is inside
--   6 graves  zset  all of it
-- ARGV     none
-- Returns  c, x, f, p and s of the door ('0' if missing), those inside, those in line, graves (ticket until span kind by
--          reason), time

local door = {}
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
    door[flat[i]] = flat[i + 1]
end

local function entrants(key)
    local found = {}
    for i, ticket in ipairs(redis.call('ZRANGE', key, 0, -1)) do
        found[i] = cmsgpack.unpack(door[':' .. ticket])
    end
    return found
end

local graves = {}
local scores = redis.call('ZRANGE', KEYS[6], 0, -1, 'WITHSCORES')
for i = 1, #scores, 2 do
    local span, kind, by, reason = unpack(cmsgpack.unpack(door['#' .. scores[i]]))
    graves[#graves + 1] = {scores[i], scores[i + 1], span, kind, by, reason}
end
local inside = door['a'] and {cmsgpack.unpack(door['a'])} or entrants(KEYS[4])
local values = {}
for i, field in ipairs({'c', 'x', 'f', 'p', 's'}) do
    values[i] = door[field] or '0'
end
return {values, inside, entrants(KEYS[2]), graves, redis.call('TIME')}
