-- refloor: lowers the floor of a ranked key to what is still outside, if nothing has been trimmed meanwhile.
--
-- KEYS
--   1  floor  HASH
--
-- ARGV
--   1  body of the entry: its field in floor
--   2  the counter of the floor as it was read: the same as long as nothing was trimmed. What was written anew since is off
--      the floor already, and may be on the one to be: that is a mark too high, not one too low
--   3  the floor to be, '' for none: nothing is outside
--
-- Returns
--   {'ok'}
--   {'moved'}   something was trimmed meanwhile, or nothing is outside any more
--   {'type', KEYS position, found type}
--
-- Errors
--   those of the server
--
-- Cost
--   O(1): one HGET, one HSET or HDEL.

local floor = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(floor) == 'table' then return typed(1, 'hash', floor) end
if not floor or string.match(floor, '^%d+') ~= ARGV[2] then return {'moved'} end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return {'ok'}
