-- apply: moves a batch of records of one partition and all of their index entries in one step.
--
-- A record whose conditions or assumptions do not hold is left alone and says so in its status; the others are
-- written. Everything is checked before the first write, because a script does not roll back.
--
-- KEYS
--   1            meta        HASH   generations, write counter, index states
--   2            manifest    HASH   id -> row
--   3            expiry      ZSET   id by the instant at which its record is due, in ms
--   4 .. 3+n     records     STRING one per record, in the order of ARGV
--   4+n ..       entries     SET    every index key that an operation names
--
-- ARGV
--   1  schema generation of the caller
--   2  n, the number of records
--   3  floor: '' on a first attempt; else the write counter seen before an attempt that may have been applied
--   then for each record
--      id, write id (8 bytes),
--      mode       P put, C create, R replace, D delete, X collect (remove what is left of a record that is gone)
--      condition  '' none, 'w' + write id of the row, 'v' + SHA-1 of the stored bytes (for a record without a row)
--      assumed    the entries that the plan removes or keeps, as in a row
--      entries    the entries of the new state, as in a row
--      value      the bytes to store
--      lifetime   'f' for ever, 'k' keep what there is, else milliseconds
--      m          the number of operations, then m times: code, KEYS position
--      code       + add, u add as the only holder, - remove
--
-- A row is: write id (8 bytes), write counter (decimal), then each entry after a newline.
--
-- Returns
--   {'ok', write counter, status of record 1, ...}
--   {'meta'}                    the partition has no meta, or has not seen the caller's generation: enter it first
--   {'schema', min}             the caller's generation is older than the oldest that may write here
--   {'type', KEYS position, found type}   meta, manifest or expiry is something else
-- A status is
--   1                           written
--   2                           an earlier attempt of this call had written it
--   {'replan', row}             the row names other entries than assumed
--   {'adopt', value}            the record exists but its row is lost: plan from the value
--   {'exists'} {'missing'} {'alive'}   the mode does not fit what is there
--   {'changed'}                 the condition does not hold
--   {'taken', KEYS position, holder, row of the holder}   another id holds a unique value; row '' if it has none
--   {'type', KEYS position, found type}   a foreign value sits at the record's key or at an entry's key
--   {'unknown'}                 an earlier attempt may have been applied and overwritten since
--
-- Errors
--   those of the server, raised before anything is written: OOM, READONLY, NOPERM
--
-- Cost
--   O(records + operations); per record one TYPE and one SET, per index key one TYPE and one SADD or SREM;
--   per call one HMGET of meta and of the manifest, one TYPE of expiry, one HINCRBY and one HSET.

local meta, manifest, expiry = KEYS[1], KEYS[2], KEYS[3]
local n = tonumber(ARGV[2])
local floor = tonumber(ARGV[3])
local first = 3 -- KEYS position before the first record
local call, pcall = redis.call, redis.pcall

local head = pcall('HMGET', meta, 'min', 'gen', 'seq', 'dels')
if head['err'] then return typed(1, 'hash', head) end
if not head[1] then return {'meta'} end
local generation = tonumber(ARGV[1])
if generation < tonumber(head[1]) then return {'schema', head[1]} end
if generation > tonumber(head[2]) then return {'meta'} end
local seq = tonumber(head[3] or 0)
local dels = tonumber(head[4] or 0)

-- Where each record starts in ARGV.
local at, ids = {}, {}
local p = 4
for i = 1, n do
  at[i] = p
  ids[i] = ARGV[p]
  p = p + 9 + 2 * tonumber(ARGV[p + 8])
end

local rows = pcall('HMGET', manifest, unpack(ids))
if rows['err'] then return typed(2, 'hash', rows) end

local types = {}   -- KEYS position -> type found there
local claimed = {} -- KEYS position -> id that claims the unique value in this call
local freed = {}   -- KEYS position -> id whose left-over claim is collected in this call
local status = {}
local puts, deletes = 0, 0

-- The state of one record against what its plan assumed: nil if it may be written, else its status.
local function check(i)
  local a = at[i]
  local id, mode, cond = ids[i], ARGV[a + 2], ARGV[a + 3]
  local row = rows[i]
  local t = typeof(first + i)
  if t ~= 'none' and t ~= 'string' then return {'type', first + i, t} end
  local alive = t == 'string'

  local wid, rowseq, entries
  if row then
    local nl = string.find(row, '\n', 9, true)
    local stamp
    wid = string.sub(row, 1, 8)
    if nl then
      stamp, entries = string.sub(row, 9, nl - 1), string.sub(row, nl + 1)
    else
      stamp, entries = string.sub(row, 9), ''
    end
    rowseq = tonumber(stamp) or 0
    if wid == ARGV[a + 1] then return 2 end
  end
  if floor then
    -- Not applied for certain only if nothing has touched the record since before that attempt was sent.
    if seq < floor then return {'unknown'} end
    if row then
      if rowseq > floor then return {'unknown'} end
    elseif mode ~= 'D' and dels > floor then
      return {'unknown'}
    end
  end

  if mode == 'C' then
    if alive then return {'exists'} end
  elseif mode == 'R' then
    if not alive then return {'missing'} end
  elseif mode == 'X' then
    if alive then return {'alive'} end
    if not row then return {'missing'} end
  elseif mode == 'D' then
    if not alive and not row then return {'missing'} end
  end

  local kind = string.sub(cond, 1, 1)
  if kind == 'w' then
    if not alive then return {'missing'} end
    if wid ~= string.sub(cond, 2) then return {'changed'} end
  elseif kind == 'v' then
    if not alive then return {'missing'} end
    if row or redis.sha1hex(call('GET', KEYS[first + i])) ~= string.sub(cond, 2) then return {'changed'} end
  end

  if row then
    if entries ~= ARGV[a + 4] and entries ~= ARGV[a + 5] then return {'replan', row} end
  elseif alive and kind ~= 'v' then
    return {'adopt', call('GET', KEYS[first + i])}
  end

  local last = a + 9 + 2 * tonumber(ARGV[a + 8]) - 1
  for o = a + 9, last, 2 do
    local k = tonumber(ARGV[o + 1])
    local found = types[k]
    if not found then
      found = typeof(k)
      types[k] = found
    end
    if found ~= 'none' and found ~= 'set' then return {'type', k, found} end
    if ARGV[o] == 'u' then
      local holder = claimed[k]
      if not holder and found == 'set' then
        holder = call('SRANDMEMBER', KEYS[k])
        if holder and freed[k] == holder then holder = nil end
      end
      if holder and holder ~= id then
        return {'taken', k, holder, call('HGET', manifest, holder) or ''}
      end
    end
  end
  -- Only a record that passed claims and frees.
  for o = a + 9, last, 2 do
    if ARGV[o] == 'u' then
      claimed[tonumber(ARGV[o + 1])] = id
    elseif ARGV[o] == '-' and mode == 'X' then
      freed[tonumber(ARGV[o + 1])] = id
    end
  end
  return nil
end

for i = 1, n do
  local s = check(i)
  if s then
    status[i] = s
  else
    status[i] = 1
    local a = at[i]
    local mode = ARGV[a + 2]
    if mode == 'D' or mode == 'X' then
      deletes = deletes + 1
    else
      puts = puts + 1
    end
  end
end

local counter = string.format('%.0f', seq)
if puts + deletes == 0 then return {'ok', counter, unpack(status)} end

-- Without the key no record of the partition has a lifetime, and no note needs to go.
local notes_type = typeof(3)
if notes_type ~= 'none' and notes_type ~= 'zset' then return {'type', 3, notes_type} end

-- The opening write. The server refuses it when it is out of memory, read-only or not allowed, and then nothing
-- has changed. A call that only deletes opens with one that is allowed when memory is full: it frees some.
if puts == 0 then call('HDEL', meta, '') end
counter = string.format('%.0f', call('HINCRBY', meta, 'seq', 1))

-- One record needs no grouping: its operations name distinct keys.
local group = n > 1
local adds, removes = {}, {}
local fresh, gone, notes, unnoted = {}, {}, {}, {}
local now -- one TIME a call: it moves inside a script while the expiry of keys does not

for i = 1, n do
  if status[i] == 1 then
    local a = at[i]
    local id, mode, life = ids[i], ARGV[a + 2], ARGV[a + 7]
    for o = a + 9, a + 9 + 2 * tonumber(ARGV[a + 8]) - 1, 2 do
      local k = tonumber(ARGV[o + 1])
      if not group then
        if ARGV[o] == '-' then call('SREM', KEYS[k], id) else call('SADD', KEYS[k], id) end
      else
        local to = adds
        if ARGV[o] == '-' then to = removes end
        local members = to[k]
        if members then members[#members + 1] = id else to[k] = {id} end
      end
    end
    if mode == 'D' or mode == 'X' then
      if mode == 'D' then call('DEL', KEYS[first + i]) end
      gone[#gone + 1] = id
      unnoted[#unnoted + 1] = id
    else
      if life == 'k' then
        call('SET', KEYS[first + i], ARGV[a + 6], 'KEEPTTL')
      elseif life == 'f' then
        call('SET', KEYS[first + i], ARGV[a + 6])
        unnoted[#unnoted + 1] = id
      else
        now = now or clock()
        local due = string.format('%.0f', now + tonumber(life))
        call('SET', KEYS[first + i], ARGV[a + 6], 'PXAT', due)
        notes[#notes + 1] = due
        notes[#notes + 1] = id
      end
      local row = ARGV[a + 1] .. counter
      if ARGV[a + 5] ~= '' then row = row .. '\n' .. ARGV[a + 5] end
      fresh[#fresh + 1] = id
      fresh[#fresh + 1] = row
    end
  end
end

-- At most 1000 arguments a command: unpack fails above a few thousand.
local function each(command, target, list)
  if #list <= 1000 then
    if #list > 0 then call(command, target, unpack(list)) end
    return
  end
  for from = 1, #list, 1000 do
    call(command, target, unpack(list, from, math.min(from + 999, #list)))
  end
end

-- Removals first: a value that one record leaves and another takes ends with its new holder.
for k, members in pairs(removes) do each('SREM', KEYS[k], members) end
for k, members in pairs(adds) do each('SADD', KEYS[k], members) end
each('HSET', manifest, fresh)
each('HDEL', manifest, gone)
each('ZADD', expiry, notes)
if notes_type == 'zset' then each('ZREM', expiry, unnoted) end
if #gone > 0 then call('HSET', meta, 'dels', counter) end
return {'ok', counter, unpack(status)}
