-- enter: tells a partition which indexes the caller's generation maintains, and creates the meta of a new one.
--
-- KEYS
--   1  meta      HASH  schema ('min gen epoch': the oldest generation that may write, the newest that entered, and a nonce
--                      of this life of the partition), seq, dels, and the state of each index
--   2  manifest  HASH
--
-- ARGV
--   1     schema generation of the caller
--   2     state of the indexes if the partition has no meta: 'ready' (nothing can be in it yet) or 'building'
--   3     nonce to become the epoch of a partition without meta
--   4 ..  state fields of the caller's indexes
--
-- Returns
--   {'ok', epoch}
--   {'schema', min}                       the caller's generation is older than the oldest that may write here
--   {'type', KEYS position, found type}
--
-- Errors
--   those of the server
--
-- Cost
--   O(indexes), one HGETALL of meta.

local t = typeof(1)
if t ~= 'hash' and t ~= 'none' then return {'type', 1, t} end
local filled = typeof(2)
if filled ~= 'hash' and filled ~= 'none' then return {'type', 2, filled} end

local generation = tonumber(ARGV[1])
if t == 'none' then
  -- A manifest without its meta means that the meta was lost: nothing is known to be whole.
  local state = ARGV[2]
  if filled ~= 'none' then state = 'building' end
  local set = {'schema', ARGV[1] .. ' ' .. ARGV[1] .. ' ' .. ARGV[3], 'seq', '0', 'dels', '0'}
  for i = 4, #ARGV do
    set[#set + 1] = ARGV[i]
    set[#set + 1] = state
  end
  for from = 1, #set, 1000 do
    redis.call('HSET', KEYS[1], unpack(set, from, math.min(from + 999, #set)))
  end
  return {'ok', ARGV[3]}
end

local all = redis.call('HGETALL', KEYS[1])
local meta = {}
for i = 1, #all, 2 do meta[all[i]] = all[i + 1] end
local min, newest, epoch = string.match(meta['schema'] or '1 0', '^(%d+) (%d+) ?(%S*)$')
if not epoch or epoch == '' then
  -- The field was damaged: this is another life of the partition.
  min, newest, epoch = min or '1', newest or '0', ARGV[3]
  redis.call('HSET', KEYS[1], 'schema', min .. ' ' .. newest .. ' ' .. epoch)
end
if generation < tonumber(min) then return {'schema', min} end
if generation <= tonumber(newest) then return {'ok', epoch} end

-- The caller is newer than all who entered: what it does not maintain stops being whole with its first write.
local mine = {}
for i = 4, #ARGV do mine[ARGV[i]] = true end
for i = 1, #all, 2 do
  local field = all[i]
  if string.sub(field, 1, 6) == 'index:' and not mine[field] then
    redis.call('HSET', KEYS[1], field, 'dropping')
  end
end
for i = 4, #ARGV do
  local state = meta[ARGV[i]]
  if state ~= 'ready' then redis.call('HSET', KEYS[1], ARGV[i], 'building') end
end
redis.call('HSET', KEYS[1], 'schema', min .. ' ' .. ARGV[1] .. ' ' .. epoch)
return {'ok', epoch}
