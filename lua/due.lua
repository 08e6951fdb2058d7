-- due: the ids whose records are due, with what was written for them, so that they can be collected.
--
-- KEYS
--   1  meta      HASH
--   2  manifest  HASH
--   3  expiry    ZSET
--
-- ARGV
--   1  how many at most
--   2  how many to leave out first
--
-- Returns
--   {'ok', how many are due in all, id, row, ...}   row is '' where there is none
--   {'type', KEYS position, found type}
--
-- Errors
--   those of the server
--
-- Cost
--   O(log records with a lifetime + ids given).

local now = '(' .. string.format('%.0f', clock())
local count = redis.pcall('ZCOUNT', KEYS[3], '-inf', now)
if type(count) == 'table' then return typed(3, 'zset', count) end
local reply = {'ok', count}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', ARGV[2], ARGV[1])) do
  local row = redis.pcall('HGET', KEYS[2], id)
  if type(row) == 'table' then return typed(2, 'hash', row) end
  reply[#reply + 1] = id
  reply[#reply + 1] = row or ''
end
return reply
