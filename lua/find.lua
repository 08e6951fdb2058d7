-- find: a page of the ids that hold one value of a membership index.
--
-- KEYS
--   1  meta    HASH
--   2  expiry  ZSET
--   3  entries SET   the index key of the value
--
-- ARGV
--   1  state field of the index in meta
--   2  cursor of SSCAN, '0' to begin
--   3  page size: a set of at most this many members comes whole
--
-- Returns
--   {'ok', next cursor, hidden, id, ...}   next cursor '0' at the end; hidden counts the ids left out as due
--   {'meta'}                               the partition has no meta
--   {'state', state}                       the index is not ready; '' if the partition does not know it
--   {'type', KEYS position, found type}
--
-- Errors
--   those of the server
--
-- Cost
--   O(page); one HMGET, one SCARD, one SMEMBERS or SSCAN, and where records have lifetimes one ZMSCORE per 1000 ids.

local refusal = unready(ARGV[1])
if refusal then return refusal end

local size = redis.pcall('SCARD', KEYS[3])
if type(size) == 'table' then return typed(3, 'set', size) end
local cursor, ids = '0', nil
if ARGV[2] == '0' and size <= tonumber(ARGV[3]) then
  ids = redis.call('SMEMBERS', KEYS[3])
else
  local page = redis.call('SSCAN', KEYS[3], ARGV[2], 'COUNT', ARGV[3])
  cursor, ids = page[1], page[2]
end

local reply = {'ok', cursor, 0}
if #ids == 0 or redis.call('EXISTS', KEYS[2]) == 0 then
  for i = 1, #ids do reply[3 + i] = ids[i] end
  return reply
end
local now = clock()
for from = 1, #ids, 1000 do
  local to = math.min(from + 999, #ids)
  local due = redis.pcall('ZMSCORE', KEYS[2], unpack(ids, from, to))
  if due['err'] then return typed(2, 'zset', due) end
  for i = from, to do
    local at = due[i - from + 1]
    if at and number(at) < now then
      reply[3] = reply[3] + 1
    else
      reply[#reply + 1] = ids[i]
    end
  end
end
return reply
