-- retire: removes the bookkeeping of a partition that holds nothing any more.
--
-- KEYS
--   1  meta      HASH
--   2  manifest  HASH
--   3  expiry    ZSET
--   4  floor     HASH
--
-- ARGV
--   1  epoch of the partition as the caller knows it
--   2  'look' to be told only, else 'remove'. A caller that has looked and found '1' removes: where nothing is there any more
--      then, an earlier attempt or somebody else has done it
--
-- Returns
--   {'ok', '1'}   nothing is left of it; on a look: it holds nothing and can go
--   {'ok', '0'}   it holds something, or has begun another life; on a look also: it is not there
--
-- Errors
--   those of the server
--
-- Cost
--   O(floors): one EXISTS, one HGET, one DEL.

if redis.call('EXISTS', KEYS[2], KEYS[3]) > 0 then return {'ok', '0'} end
local meta = typeof(1)
if meta == 'none' and ARGV[2] == 'remove' then
  redis.call('DEL', KEYS[4])
  return {'ok', '1'}
end
if meta ~= 'hash' then return {'ok', '0'} end
local schema = redis.call('HGET', KEYS[1], 'schema')
if not schema or string.match(schema, '(%S*)$') ~= ARGV[1] then return {'ok', '0'} end
-- A builder is at work, or an index is known not to be whole: that must not be forgotten.
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if all[i] == 'fence' and all[i + 1] ~= '' then return {'ok', '0'} end
  if string.sub(all[i], 1, 6) == 'index:' and all[i + 1] ~= 'ready' then return {'ok', '0'} end
end
if ARGV[2] == 'remove' then redis.call('DEL', KEYS[1], KEYS[4]) end
return {'ok', '1'}
