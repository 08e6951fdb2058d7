-- fence: begins a build: shuts out writers of older declarations, and every other builder.
--
-- KEYS
--   1  meta  HASH
--
-- ARGV
--   1  schema generation of the builder: the newest that entered
--   2  nonce that names the build
--
-- Returns
--   {'ok'}
--   {'meta'}             the partition has no meta, or has not seen the caller's generation: enter it first
--   {'schema', newest}   a newer declaration has entered
--   {'type', KEYS position, found type}
--
-- Errors
--   those of the server
--
-- Cost
--   O(1): one HGET and one HSET.

local schema = redis.pcall('HGET', KEYS[1], 'schema')
if type(schema) == 'table' then return typed(1, 'hash', schema) end
if not schema then return {'meta'} end
local newest, epoch = string.match(schema, '^%d+ (%d+)(.*)$')
if not newest then return {'meta'} end
if ARGV[1] + 0 < newest + 0 then return {'schema', newest} end
if ARGV[1] + 0 > newest + 0 then return {'meta'} end
redis.call('HSET', KEYS[1], 'schema', ARGV[1] .. ' ' .. newest .. epoch, 'fence', ARGV[2], 'built', '0')
return {'ok'}
