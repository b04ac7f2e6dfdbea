-- Read a page of the items of a pool. Changes nothing.
--
-- Purpose  For `pool ls`: page by page, so that a large pool does not block other clients.
-- KEYS     1 items · 2 due, as in pool_step_1_read.lua
--   1 items  hash  one page
--   2 due    zset  the scores of the page
-- ARGV     1 cursor: '0', then the one returned
-- Returns  the next cursor ('0': this was the last page), key, score, head ('' if it has none) and body of each item,
--          time

local cursor = unpack(ARGV, 1, 1)
local next_cursor, fields = unpack(redis.call('HSCAN', KEYS[1], cursor, 'COUNT', 500))
local items = {}
for n = 1, #fields, 2 do
    local field, value = fields[n], fields[n + 1]
    if string.sub(field, 1, 1) == '#' then
        local key = string.sub(field, 2)
        local score = redis.call('ZSCORE', KEYS[2], key)
        if score then
            items[#items + 1] = {key, score, redis.call('HGET', KEYS[1], '=' .. key) or '', value}
        end
    end
end
return {next_cursor, items, redis.call('TIME')}
