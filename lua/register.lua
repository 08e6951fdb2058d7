-- register: gives a declaration its schema generation and each of its indexes the generation of its definition.
--
-- KEYS
--   1  catalog  HASH  generation, start, planted, 'schema:' + fingerprint -> generation, 'text:' + generation ->
--                     definition, 'index:' + name -> newest generation, 'index:' + name + ':' + fingerprint -> generation
--
-- ARGV
--   1  fingerprint of the declaration
--   2  its definition, as text, for people
--   3  what to do with an entity type that has no catalog: '' nothing, else the state its partitions start in
--      ('ready' if no record exists, 'building' if one does)
--   4  '1': become the newest generation even if the fingerprint is known (a rollback)
--   5 ..  pairs: index name, fingerprint of the index
--
-- Returns
--   {'ok', schema generation, start, planted, generation of index 1, ...}   planted '1' once the partitions exist
--   {'new'}                                no catalog, and ARGV[3] is ''
--   {'type', KEYS position, found type}
--
-- Errors
--   those of the server
--
-- Cost
--   O(indexes); one HMGET and one HSET a call.

local key = KEYS[1]
local t = typeof(1)
if t ~= 'hash' and t ~= 'none' then return {'type', 1, t} end
if t == 'none' and ARGV[3] == '' then return {'new'} end

local set = {}
local function put(field, value)
  set[#set + 1] = field
  set[#set + 1] = value
end

local head = redis.call('HMGET', key, 'generation', 'schema:' .. ARGV[1], 'start', 'planted')
local newest, generation = tonumber(head[1] or '0'), tonumber(head[2] or '0')
local start, planted = head[3] or ARGV[3], head[4] or ''
if t == 'none' then put('start', start) end
if generation == 0 or (ARGV[4] == '1' and generation < newest) then
  generation = newest + 1
  put('generation', generation)
  put('schema:' .. ARGV[1], generation)
  put('text:' .. generation, ARGV[2])
end

local reply = {'ok', generation, start, planted}
for i = 5, #ARGV, 2 do
  local name = 'index:' .. ARGV[i]
  local field = name .. ':' .. ARGV[i + 1]
  local known = redis.call('HMGET', key, field, name)
  local g = tonumber(known[1] or '0')
  if g == 0 then
    g = tonumber(known[2] or '0') + 1
    put(field, g)
    put(name, g)
  end
  reply[#reply + 1] = g
end
for from = 1, #set, 1000 do
  redis.call('HSET', key, unpack(set, from, math.min(from + 999, #set)))
end
return reply
