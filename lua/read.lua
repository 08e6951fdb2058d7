-- read: the records of some ids together with the rows that say which entries were written for them.
--
-- KEYS
--   1         meta      HASH
--   2         manifest  HASH
--   3 .. 2+n  records   STRING
--
-- ARGV
--   1 .. n    ids, in the order of the records
--
-- Returns
--   {'ok', write counter, row 1, value 1, ttl 1, ...}   row and value are false where there is none; ttl in ms as PTTL gives it
--   {'type', KEYS position, found type}
--
-- Errors
--   those of the server
--
-- Cost
--   O(n): one HGET, one GET and one PTTL a record.

local seq = redis.pcall('HGET', KEYS[1], 'seq')
if type(seq) == 'table' and seq['err'] then return typed(1, 'hash', seq) end
local reply = {'ok', seq or '0'}
for i, id in ipairs(ARGV) do
  local row = redis.pcall('HGET', KEYS[2], id)
  if type(row) == 'table' and row['err'] then return typed(2, 'hash', row) end
  local value = redis.pcall('GET', KEYS[2 + i])
  if type(value) == 'table' and value['err'] then return typed(2 + i, 'string', value) end
  reply[#reply + 1] = row
  reply[#reply + 1] = value
  reply[#reply + 1] = redis.call('PTTL', KEYS[2 + i])
end
return reply
