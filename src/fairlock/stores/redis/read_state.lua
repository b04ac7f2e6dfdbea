-- Read the whole state of one resource. Changes nothing.
--
-- Purpose  A consistent snapshot for `ls` and `show`.
-- KEYS     1 state · 2 queue · 3 waiter_expiry · 4 holders · 5 unconfirmed · 6 tombstones, as in step_1_read.lua
--   1 state       hash  all of it
--   2 queue       zset  the order
--   4 holders     zset  the tickets of several holders
--   6 tombstones  zset  all of it
-- ARGV     none
-- Returns  c, f, p and s of the state ('0' if missing), the holders, the waiters, the tombstones (ticket, until, its
--          fields), the time

local state = {}
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
    state[flat[i]] = flat[i + 1]
end

local function read_if_used(letter, key, ...)
    return string.find(state['i'] or '', letter, 1, true) and redis.call('ZRANGE', key, 0, -1, ...) or {}
end

local function unpack_entries(tickets)
    local entries = {}
    for _, ticket in ipairs(tickets) do
        local packed = state[':' .. ticket]
        entries[#entries + 1] = packed and cmsgpack.unpack(packed)
    end
    return entries
end

local tombstones = {}
local scores = read_if_used('t', KEYS[6], 'WITHSCORES')
for i = 1, #scores, 2 do
    local ticket, till = scores[i], scores[i + 1]
    local packed = state['#' .. ticket]
    if packed then
        tombstones[#tombstones + 1] = {ticket, till, unpack(cmsgpack.unpack(packed))}
    end
end
local holders = unpack_entries(read_if_used('h', KEYS[4]))
if state['a'] and state['a'] ~= '' then
    holders = {cmsgpack.unpack(state['a'])}
end
local waiters = unpack_entries(read_if_used('q', KEYS[2]))
local values = {state['c'] or '0', state['f'] or '0', state['p'] or '0', state['s'] or '0'}
return {values, holders, waiters, tombstones, redis.call('TIME')}
