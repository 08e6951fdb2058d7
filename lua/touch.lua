-- touch: gives a record that exists another lifetime, and nothing else.
--
-- KEYS
--   1  meta    HASH
--   2  expiry  ZSET
--   3  record  STRING
--
-- ARGV
--   1  id
--   2  lifetime: 'f' for ever, milliseconds from now, or 'a' + an instant in milliseconds since 1970
--
-- Returns
--   {'ok'}
--   {'meta'}                               the partition has no meta
--   {'missing'}                            there is no record
--   {'past'}                               the instant is past; nothing was changed
--   {'type', KEYS position, found type}
--
-- Errors
--   those of the server, raised before anything is written
--
-- Cost
--   O(log records with a lifetime).

local schema = redis.pcall('HGET', KEYS[1], 'schema')
if type(schema) == 'table' then return typed(1, 'hash', schema) end
if not schema then return {'meta'} end
local notes = typeof(2)
if notes ~= 'none' and notes ~= 'zset' then return {'type', 2, notes} end
local found = typeof(3)
if found == 'none' then return {'missing'} end
if found ~= 'string' then return {'type', 3, found} end

local id, life = ARGV[1], ARGV[2]
if life == 'f' then
  redis.call('PERSIST', KEYS[3])
  redis.call('ZREM', KEYS[2], id)
  return {'ok'}
end
local now = clock()
local due
if string.sub(life, 1, 1) == 'a' then
  due = string.sub(life, 2)
  if due + 0 <= now then return {'past'} end
else
  due = string.format('%.0f', now + life)
end
-- The note goes first: it is what a server that is full or read-only refuses.
redis.call('ZADD', KEYS[2], due, id)
redis.call('PEXPIREAT', KEYS[3], due)
return {'ok'}
