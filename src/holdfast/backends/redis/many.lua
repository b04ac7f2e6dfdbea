-- The same step for many doors in one script: for tasks, who say what they say in one turn of the loop together.
--
-- Purpose  enter.lua or leave.lua becomes a function in here when it is loaded, and is called for one door after the
--          other; all of them happen at the same time. So there is no second version of either. One that meets an error
--          (a key of another type, say) does not keep the others.
-- KEYS     the doors, one for each, as in record.lua
-- ARGV     1 how many arguments each has for itself · then the first of those of each, and the second of each, as far
--          as there are any · then those that are the same for all, which come last in the script itself, too
-- Returns  for each what the script returns, or its error

local TIME = redis.call('TIME')
local function one(KEYS, ARGV)
    -- here
end

local many, own = #KEYS, tonumber(ARGV[1])
local key, words, found = {}, {}, {}
for i = 2 + own * many, #ARGV do
    words[i - 1 - own * many + own] = ARGV[i]
end
for i = 1, many do
    key[1] = KEYS[i]
    for j = 1, own do
        words[j] = ARGV[1 + (j - 1) * many + i]
    end
    local fine, said = pcall(one, key, words)
    found[i] = fine and said or not fine and {err = type(said) == 'table' and said.err or said}
end
return found
