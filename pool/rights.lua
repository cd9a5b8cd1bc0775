#!lua flags=no-writes
-- rights.lua tells which commands the user of this connection may not run; it runs none.
-- ARGV[1]  a key of ours, to ask about: a server must not be asked about less (7.0 ends)
-- ARGV[+1] a command, blanks between its words
-- Returns those that are refused, in the same order.
local refused = {}
for i = 2, #ARGV do
  local words = {}
  for word in string.gmatch(ARGV[i], '%S+') do
    words[#words + 1] = word
  end
  words[#words + 1] = ARGV[1]
  if words[1] == 'eval' or words[1] == 'evalsha' then
    words[#words + 1] = '0' -- number of keys: Valkey 9.1 ends when it is asked without one
  end
  if not redis.acl_check_cmd(unpack(words)) then
    refused[#refused + 1] = ARGV[i]
  end
end
return refused
