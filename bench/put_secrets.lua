-- For wrk: each request writes one of seventy keys of ten Secrets, with a value of its own. The URL ends in the
-- namespace.
local number = 0

request = function()
   number = number + 1
   local path = string.format("%s/secret-%d/key-%d", wrk.path, number % 10, number % 7)
   return wrk.format("PUT", path, nil, "value " .. number)
end
