-- Run the lock step or the pool step for many locks or items in one script.
--
-- Purpose  The keeper renews many leases by one request. The full step becomes the body of run_one when this one is
--          loaded, so that its rules do not exist twice. All steps see the same time. An error at one of them (a key of
--          another type, for example) does not affect the others.
-- KEYS     all keys of the first lock or pool as in its step, then all keys of the second one, and so on
-- ARGV     1 key_count: how many keys each has · 2 arg_count: how many arguments each has · then all arguments of the
--          first step, then all of the second one, and so on
-- Returns  for each the result of the step, or its error

local TIME = redis.call('TIME')
local function run_one(KEYS, ARGV)
    BODY()
end

local key_count, arg_count = tonumber(ARGV[1]), tonumber(ARGV[2])
local results = {}
for i = 1, #KEYS / key_count do
    local keys = {unpack(KEYS, (i - 1) * key_count + 1, i * key_count)}
    local args = {unpack(ARGV, (i - 1) * arg_count + 3, i * arg_count + 2)}
    local ok, result = pcall(run_one, keys, args)
    results[i] = ok and result or {err = type(result) == 'table' and result.err or result}
end
return results
