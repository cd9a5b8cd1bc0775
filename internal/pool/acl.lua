#!lua flags=no-writes
-- acl.lua reports which commands the user of this connection may not run. It runs none.
-- ARGV[+1] a command with its minimum number of words (probeCommand), separated by blanks
-- Returns the positions of the refused commands, in order.
local refused = {}
for i = 1, #ARGV do
  local words = {}
  for word in string.gmatch(ARGV[i], '%S+') do
    words[#words + 1] = word
  end
  if not redis.acl_check_cmd(unpack(words)) then
    refused[#refused + 1] = i
  end
end
return refused
