-- count: how many ids hold one of some values of a membership index, where no id holds two of them.
--
-- KEYS
--   1       meta     HASH
--   2       expiry   ZSET
--   3 ..    entries  SET   one index key per value
--
-- ARGV
--   1  state field of the index in meta
--
-- Returns
--   {'ok', count}
--   {'meta'}                               the partition has no meta
--   {'state', state}                       the index is not ready; '' if the partition does not know it
--   {'type', KEYS position, found type}
--
-- Errors
--   those of the server
--
-- Cost
--   O(values), plus O(due records that nothing has collected yet) with one SMISMEMBER per 1000 of them and value.

local refusal = unready(ARGV[1])
if refusal then return refusal end

local count = 0
for k = 3, #KEYS do
  local size = redis.pcall('SCARD', KEYS[k])
  if type(size) == 'table' then return typed(k, 'set', size) end
  count = count + size
end
if count == 0 or redis.call('EXISTS', KEYS[2]) == 0 then return {'ok', count} end

local now = '(' .. string.format('%.0f', clock())
local from = 0
while true do
  local due = redis.pcall('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', from, 1000)
  if due['err'] then return typed(2, 'zset', due) end
  if #due > 0 then
    for k = 3, #KEYS do
      local held = redis.call('SMISMEMBER', KEYS[k], unpack(due))
      for i = 1, #held do count = count - held[i] end
    end
  end
  if #due < 1000 then return {'ok', count} end
  from = from + 1000
end
