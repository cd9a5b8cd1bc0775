#!lua flags=no-writes
-- acl.lua tells which commands the user of this connection may not run; it runs none.
-- ARGV[+1] a command with as many words as it needs (questionOf), blanks between them
-- Returns the places of those that are refused, in the same order.
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
