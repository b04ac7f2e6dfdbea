-- Some of the items of a pool, as they are. Changes nothing.
--
-- Purpose  What `pool ls` reads, page by page, so that no pool is too large to be looked at while others work.
-- KEYS     1 items · 2 due, as in pool.lua
--   1 items   hash  some of it
--   2 due     zset  their scores
-- ARGV     1 cursor: '0', then what was returned
-- Returns  the next cursor ('0': that was the last page), key, score, head ('' if it has none) and body of each item,
--          time

local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 500)
local found = {}
for n = 1, #page[2], 2 do
    if string.sub(page[2][n], 1, 1) == '#' then
        local key = string.sub(page[2][n], 2)
        local score = redis.call('ZSCORE', KEYS[2], key)
        if score then
            found[#found + 1] = {key, score, redis.call('HGET', KEYS[1], '=' .. key) or '', page[2][n + 1]}
        end
    end
end
return {page[1], found, redis.call('TIME')}
