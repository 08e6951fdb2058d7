-- refloor: lowers the floor of a ranked key to the best that is still outside, if nothing has been trimmed meanwhile.
--
-- KEYS
--   1  floor  HASH
--
-- ARGV
--   1  body of the entry: its field in floor
--   2  the floor as it was read: 'trims score member'
--   3  the floor to be, '' for none: nothing is outside
--
-- Returns
--   {'ok'}
--   {'moved'}   the floor is another one by now
--   {'type', KEYS position, found type}
--
-- Errors
--   those of the server
--
-- Cost
--   O(1): one HGET, one HSET or HDEL.

local floor = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(floor) == 'table' then return typed(1, 'hash', floor) end
if floor ~= ARGV[2] then return {'moved'} end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return {'ok'}
