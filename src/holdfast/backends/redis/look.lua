-- The record as it is. Changes nothing.
--
-- Purpose  What `ls` and `show` read, in one moment.
-- KEYS     1 door · 2 line · 3 due · 4 room · 5 unsure · 6 graves, as in record.lua
--   1 door    hash  all of it
--   2 line    zset  the order
--   4 room    zset  who of those at the door is inside
--   6 graves  zset  all of it
-- ARGV     none
-- Returns  c, f, p and s of the door ('0' if missing), those inside, those in line, graves (ticket, until and what
--          is in it), time

local door = {}
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
    door[flat[i]] = flat[i + 1]
end

local function found(letter, key, ...) -- only what is in use, as door says
    return string.find(door['g'] or '', letter, 1, true) and redis.call('ZRANGE', key, 0, -1, ...) or {}
end

local function entrants(tickets)
    local all = {}
    for _, ticket in ipairs(tickets) do
        local seat = door[':' .. ticket]
        all[#all + 1] = seat and cmsgpack.unpack(seat)
    end
    return all
end

local graves = {}
local scores = found('g', KEYS[6], 'WITHSCORES')
for i = 1, #scores, 2 do
    local grave = door['#' .. scores[i]]
    if grave then
        graves[#graves + 1] = {scores[i], scores[i + 1], unpack(cmsgpack.unpack(grave))}
    end
end
local inside = entrants(found('r', KEYS[4]))
if door['a'] and door['a'] ~= '' then
    inside = {cmsgpack.unpack(door['a'])}
end
local values = {}
for i, field in ipairs({'c', 'f', 'p', 's'}) do
    values[i] = door[field] or '0'
end
return {values, inside, entrants(found('l', KEYS[2])), graves, redis.call('TIME')}
