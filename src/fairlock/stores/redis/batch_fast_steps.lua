-- Run fast_acquire.lua or fast_release.lua for many locks in one script.
--
-- Purpose  Tasks that acquire in the same turn of an event loop share one request. One of the two scripts becomes the
--          body of run_one when this one is loaded, so that neither exists twice. All locks see the same time. An error
--          at one lock (a key of another type, for example) does not affect the others.
-- KEYS     the state of each lock, as in step_1_read.lua
-- ARGV     1 own: how many arguments each lock has for itself · then the first of these for every lock, then the second
--          for every lock, and so on · then the shared arguments, which are the last ones in the script itself, too
-- Returns  for each lock the result of the script, or its error

local TIME = redis.call('TIME')
local function run_one(KEYS, ARGV)
    BODY()
end

local count, own = #KEYS, tonumber(ARGV[1])
local key, args, results = {}, {}, {}
for i = 2 + own * count, #ARGV do
    args[i - 1 - own * count + own] = ARGV[i]
end
for i = 1, count do
    key[1] = KEYS[i]
    for j = 1, own do
        args[j] = ARGV[1 + (j - 1) * count + i]
    end
    local ok, result = pcall(run_one, key, args)
    results[i] = ok and result or not ok and {err = type(result) == 'table' and result.err or result}
end
return results
