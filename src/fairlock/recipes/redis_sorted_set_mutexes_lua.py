"""The Lua of ZMutexSet: the rules of a sorted set of mutexes, each step on its own.

KEYS  1 the sorted set: name -> 0, or when it was taken or updated last, in microseconds of the server's clock
      2 a companion of ours, a hash: =NAME the ticket that has set a score, and this score
                                     :TICKET the name that it took · last the last score given out
ARGV  1 ticket · 2 timeout in microseconds · 3 the channel of the waiters · 4 name · 5 score · 6 clean up

The companion is not needed to read the set, and other programs may change the set as they like: an entry of the
companion counts only as long as the score is the same. Because of it no score is given out twice (the clock may stand
still for a microsecond), and a request that is repeated because its reply was lost is done once.
"""

OPEN = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit = now - ARGV[2]
local ticket, channel, name = ARGV[1], ARGV[3], ARGV[4]

local function text(number)
    return string.format('%.0f', number)
end

local function mark(score) -- record that this ticket has set it
    local before = redis.call('HGET', KEYS[2], '=' .. name)
    if before then
        redis.call('HDEL', KEYS[2], ':' .. string.match(before, '^%S*'))
    end
    redis.call('HSET', KEYS[2], '=' .. name, ticket .. ' ' .. score)
    redis.call('PEXPIRE', KEYS[2], text(ARGV[2] / 500 + 60000))
end

local function forget()
    local before = redis.call('HGET', KEYS[2], '=' .. name)
    redis.call('HDEL', KEYS[2], '=' .. name, before and ':' .. string.match(before, '^%S*') or '=' .. name)
end

local function stamp() -- now, or a little later: no two are the same, unless the clock was set back
    local last, score = tonumber(redis.call('HGET', KEYS[2], 'last') or 0), now
    if last >= now and last < now + 1000000 then
        score = last + 1
    end
    mark(text(score))
    redis.call('HSET', KEYS[2], 'last', text(score))
    redis.call('ZADD', KEYS[1], text(score), name)
    return text(score)
end

local function is_mine(score) -- a repeated request, whose first reply was lost
    return score and redis.call('HGET', KEYS[2], '=' .. name) == ticket .. ' ' .. score
end
"""

# Whether it is new.
CREATE = """
if redis.call('ZADD', KEYS[1], 'NX', '0', name) == 1 then
    mark('0')
    redis.call('PUBLISH', channel, name)
    return 1
end
return is_mine(redis.call('ZSCORE', KEYS[1], name)) and 1 or 0
"""

# {name, score}; or {microseconds}: for how long it is of no use to ask again, -1 if nobody knows.
ACQUIRE = """
local before = redis.call('HGET', KEYS[2], ':' .. ticket)
if before then
    local wanted = name
    name = before
    local score = redis.call('ZSCORE', KEYS[1], name)
    if is_mine(score) and tonumber(score) > limit then
        return {name, score}
    end
    name = wanted
end
if name ~= '' then
    local score = redis.call('ZSCORE', KEYS[1], name)
    if not score or tonumber(score) < 0 then
        return {-1}
    elseif tonumber(score) >= limit then
        return {score - limit + 1}
    end
else
    name = redis.call('ZRANGEBYSCORE', KEYS[1], '0', '(' .. text(limit), 'LIMIT', 0, 1)[1]
    if not name then
        local coming = redis.call('ZRANGEBYSCORE', KEYS[1], text(limit), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
        return {coming and coming - limit + 1 or -1}
    end
end
local score = stamp()
redis.call('HSET', KEYS[2], ':' .. ticket, name)
return {name, score}
"""

# The new score, if the present one is still the one in the request.
UPDATE = """
local score = redis.call('ZSCORE', KEYS[1], name)
if is_mine(score) then
    return score
elseif score ~= ARGV[5] or tonumber(score) <= limit then
    return false
end
return stamp()
"""

# 1: it was ours, 0: it is another's or has expired, -1: it is nobody's; and whether it would have expired by now.
RELEASE = """
local score = redis.call('ZSCORE', KEYS[1], name)
local over = tonumber(ARGV[5]) <= limit and 1 or 0
if not score or score == '0' then
    return {-1, over}
elseif score ~= ARGV[5] or over == 1 then
    return {0, over}
end
forget()
if ARGV[6] == '1' then
    redis.call('ZREM', KEYS[1], name)
else
    redis.call('ZADD', KEYS[1], '0', name)
    redis.call('PUBLISH', channel, name)
end
return {1, over}
"""

# What this ticket may have taken goes back: no reply about it has arrived.
WITHDRAW = """
name = redis.call('HGET', KEYS[2], ':' .. ticket)
if name and is_mine(redis.call('ZSCORE', KEYS[1], name)) then
    forget()
    redis.call('ZADD', KEYS[1], '0', name)
    redis.call('PUBLISH', channel, name)
end
return 1
"""

DELETE = """
forget()
return redis.call('ZREM', KEYS[1], name)
"""

# {those that were never taken, those that were taken and have expired}
STALE = """
return {
    redis.call('ZRANGEBYSCORE', KEYS[1], '0', '0'),
    redis.call('ZRANGEBYSCORE', KEYS[1], '(0', '(' .. text(limit)),
}
"""
