-- ready: ends a build: marks indexes ready, if every write of the build is still there and nobody has taken over.
--
-- KEYS
--   1  meta  HASH
--
-- ARGV
--   1     schema generation of the builder
--   2     nonce that names the build
--   3     how many records the build has written under it
--   4 ..  state fields of the indexes
--
-- Returns
--   {'ok'}
--   {'meta'}             the partition has no meta
--   {'schema', newest}   a newer declaration has entered: it may not maintain these indexes
--   {'fence'}            another builder has planted a fence since, or this one is lost
--   {'lost', counter}    the server has not kept all that was written: a failover
--   {'type', KEYS position, found type}
--
-- Errors
--   those of the server
--
-- Cost
--   O(indexes): one HMGET, one HSET and one HDEL.

local head = redis.pcall('HMGET', KEYS[1], 'schema', 'fence', 'built')
if head['err'] then return typed(1, 'hash', head) end
if not head[1] then return {'meta'} end
local newest = string.match(head[1], '^%d+ (%d+)')
if newest ~= ARGV[1] then return {'schema', newest or ''} end
if head[2] ~= ARGV[2] then return {'fence'} end
if head[3] ~= ARGV[3] then return {'lost', head[3] or ''} end
local set = {}
for i = 4, #ARGV do
  set[#set + 1] = ARGV[i]
  set[#set + 1] = 'ready'
end
for from = 1, #set, 1000 do
  redis.call('HSET', KEYS[1], unpack(set, from, math.min(from + 999, #set)))
end
redis.call('HDEL', KEYS[1], 'fence', 'built')
return {'ok'}
