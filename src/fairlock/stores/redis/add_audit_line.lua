-- Add one audit line to a name. The newest hundred are kept, for thirty days after the last one.
--
-- Purpose  One step, so that a line has the time of the server, and two operators cannot lose each other's lines.
-- KEYS     1 audit, in the slot of the lock
--   1 audit  list  the time in microseconds, a space, the line as JSON; the newest first
-- ARGV     1 line
-- Returns  the number of lines

local NEWEST, KEPT_FOR = 100, 2592000000
local line = unpack(ARGV, 1, 1)
local time = redis.call('TIME')
if type(redis.pcall('LLEN', KEYS[1])) == 'table' then -- of another type: another program has written it
    redis.call('DEL', KEYS[1])
end
redis.call('LPUSH', KEYS[1], string.format('%d %s', time[1] * 1000000 + time[2], line))
redis.call('LTRIM', KEYS[1], 0, NEWEST - 1)
redis.call('PEXPIRE', KEYS[1], KEPT_FOR)
return redis.call('LLEN', KEYS[1])
