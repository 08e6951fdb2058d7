-- read: the records of some ids together with the rows that say which entries were written for them.
--
-- KEYS
--   1         meta      HASH
--   2         manifest  HASH
--   3 .. 2+n  records   STRING
--
-- ARGV
--   1           '1' if the time to live of each record is wanted, else ''
--   2 .. 1+n    ids, in the order of the records
--
-- Returns
--   {'ok', write counter, row 1, value 1, ttl 1, ...}   row and value are false where there is none; where something else than
--                         a string is stored, a value is {found type}; ttl in ms as PTTL gives it, -1 where it is not wanted
--   {'type', KEYS position, found type}   meta or manifest is something else
--
-- Errors
--   those of the server
--
-- Cost
--   O(n): one HGET of meta, one HMGET of the manifest and one MGET for all; per record one TYPE where there is no string,
--   and one PTTL where it is wanted.

local seq = redis.pcall('HGET', KEYS[1], 'seq')
if type(seq) == 'table' and seq['err'] then return typed(1, 'hash', seq) end
local reply = {'ok', seq or '0'}
local ttls, tail = ARGV[1] ~= '', #KEYS
for from = 3, tail, 1000 do
  local to = math.min(from + 999, tail)
  local rows = redis.pcall('HMGET', KEYS[2], unpack(ARGV, from - 1, to - 1))
  if rows['err'] then return typed(2, 'hash', rows) end
  local values = redis.call('MGET', unpack(KEYS, from, to))
  for i = 1, #rows do
    local k, value = from + i - 1, values[i]
    if not value then
      local found = typeof(k)
      if found ~= 'none' then value = {found} end
    end
    reply[#reply + 1] = rows[i]
    reply[#reply + 1] = value
    reply[#reply + 1] = ttls and redis.call('PTTL', KEYS[k]) or -1
  end
end
return reply
