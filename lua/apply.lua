-- apply: moves a batch of records of one partition and all of their index entries in one step.
--
-- A record whose conditions or assumptions do not hold is left alone and says so in its status; the others are
-- written. Everything is checked before the first write, because a script does not roll back.
--
-- KEYS
--   1            meta        HASH   generations, write counter, index states
--   2            manifest    HASH   id -> row
--   3            expiry      ZSET   id by the instant at which its record is due, in ms
--   4            floor       HASH   entry body -> the best that a ranked key has trimmed, as in floor.lua
--   5 .. 4+n     records     STRING one per record, in the order of ARGV
--   5+n ..       entries     SET, ZSET   every index key that an operation names
--
-- ARGV
--   1  schema generation of the caller, a space, and the epoch of the partition as the caller knows it
--   2  n, the number of records
--   3  floor: '' on a first attempt; else the write counter seen before an attempt that may have been applied
--   4  the fence of the builder that writes, '' for anybody else
--   5  how many ids that are due the caller wants to be told
--   6  the number of trims, then for each
--      KEYS position, body of the entry, 'top' or 'low' (which end is kept), how many are kept (0 for all: nothing is trimmed,
--      what leaves the key leaves its floor too), how many more may be there, largest age and unit of the score, both in
--      microseconds ('' and '' without)
--   then 1, mode and lifetime if the records have both in common, else 0, '' and ''
--   then 1, condition and assumed if they have both of them in common, else 0, '' and ''
--   then for each record
--      id, write id (8 bytes),
--      entries    the entries of the new state, as in a row
--      value      the bytes to store
--      and unless they are in common
--      mode       P put, C create, R replace, D delete, X collect (remove what is left of a record that is gone),
--                 F fix (write entries and row again, not the record)
--      lifetime   'f' for ever, 'k' keep what there is, milliseconds from now, or 'a' + an instant in milliseconds since
--                 1970; an instant that is past makes the write a delete
--      and unless they are in common
--      condition  '' none, 'w' + write id of the row, 'b' + SHA-1 of the stored bytes + write id of the row, 'v' + SHA-1 of
--                 the stored bytes (for a record without a row), 'f' + SHA-1 of the stored bytes + row ('' for none): nothing
--                 has moved since
--      assumed    the entries that the plan removes or keeps, as in a row
--   then the operations, grouped: all of one kind on one index key stand together as
--      code, KEYS position, how many, and for each what the command takes
--      code       SET: + add, u add as the only holder, - remove                      each: id
--                 ZSET: z add by score                                                each: score, id
--                       y remove                                                      each: id
--                       l add with score 0, k remove, what stands before the id first  each: prefix, id
--
-- A row is: write id (8 bytes), write counter (decimal), then each entry after a newline.
--
-- Returns
--   {'ok', write counter, status of record 1, ..., id, row, ...}   after the statuses a few ids that are due, each with its
--                               row ('' if it has none), for the caller to collect in its next call
--   {'meta'}                    the partition has no meta, another epoch, or has not seen the caller's generation: enter it
--   {'schema', min}             the caller's generation is older than the oldest that may write here
--   {'fence'}                   another builder has planted a fence since
--   {'type', KEYS position, found type}   meta, manifest, expiry or floor is something else
-- A status is
--   1                           written
--   2                           an earlier attempt of this call had written it
--   {'replan', row}             the row names an entry that is neither assumed nor written again
--   {'adopt', value}            the record exists but its row is lost: plan from the value
--   {'exists'} {'missing'} {'alive'}   the mode does not fit what is there
--   {'changed', value, row}     the condition does not hold for what is there; row '' if it has none
--   {'taken', KEYS position, holder, row of the holder}   another id holds a unique value; row '' if it has none
--   {'type', KEYS position, found type}   a foreign value sits at the record's key or at an entry's key
--   {'unknown'}                 an earlier attempt may have been applied and overwritten since
--
-- Errors
--   those of the server, raised before anything is written: OOM, READONLY, NOPERM
--
-- Cost
--   O(records + operations), a ZSET operation O(log members). A record without a row beside others like it costs no command
--   of its own, any other one STRLEN, or GET and a digest of its bytes where a condition is about them, and one SET where it
--   has a lifetime; per index key one SCARD or ZCARD and one SADD, SREM, ZADD or ZREM, and where it is bounded one ZCARD more
--   and, over its bound, a trim of O(trimmed); where any is bounded one HMGET of floor and, where one of them moved, one
--   HSET; per call one HGET and one HINCRBY of meta, one HMGET and one HSET of the manifest, one ZCARD of expiry, and one
--   MSET. Sizes are asked for because that tells the type of a key too, and a number is less work than the name of a type.

local keys, argv = KEYS, ARGV
local meta, manifest, expiry = keys[1], keys[2], keys[3]
local n, floor, fence, trims = argv[2] + 0, argv[3], argv[4], argv[6] + 0
local call, pcall = redis.call, redis.pcall
local sub, find, byte, min = string.sub, string.find, string.byte, math.min

-- Where things stand. Record i has its key at KEYS first + i and what is its own from ARGV records + stride * i on; its
-- mode and lifetime are at ARGV modes + modes_step * i and after, its condition and assumed at conds + conds_step * i.
local first, stride = 4, 4
local common = 7 + 7 * trims
local modes, modes_step, conds, conds_step = common + 1, 0, common + 4, 0
local own_modes, own_conds = argv[common] == '0', argv[common + 3] == '0'
if own_modes then stride = stride + 2 end
if own_conds then stride = stride + 2 end
local records = common + 6 - stride
if own_modes then modes, modes_step = records + 4, stride end
if own_conds then conds, conds_step = records + (own_modes and 6 or 4), stride end
local groups, last = records + stride * (n + 1), #argv

-- The generation. Nearly always nobody is older or newer than the caller.
local schema = pcall('HGET', meta, 'schema')
if type(schema) == 'table' then return typed(1, 'hash', schema) end
if not schema then return {'meta'} end
local space = find(schema, ' ', 1, true) or 0
if sub(schema, space + 1) ~= argv[1] then
  local newest, epoch = string.match(schema, '^%d+ (%d+) (%S*)$')
  if not epoch then return {'meta'} end
  local generation, known = string.match(argv[1], '^(%d+) (%S*)$')
  if epoch ~= known or generation + 0 > newest + 0 then return {'meta'} end
  local min = sub(schema, 1, space - 1)
  if generation + 0 < min + 0 then return {'schema', min} end
end
if fence ~= '' and call('HGET', meta, 'fence') ~= fence then return {'fence'} end

-- Counters of the partition: only a repeated attempt needs them before the write.
local seq, dels
if floor ~= '' then
  floor = tonumber(floor)
  local counters = call('HMGET', meta, 'seq', 'dels')
  seq, dels = tonumber(counters[1] or 0), tonumber(counters[2] or 0)
else
  floor = nil
end

-- Without the key no record of the partition has a lifetime, and no note needs to go.
local noted = pcall('ZCARD', expiry)
if type(noted) == 'table' then return typed(3, 'zset', noted) end
noted = noted > 0

-- What the ranked keys have trimmed, by KEYS position; nil without any.
local floors
for from = 7, 7 * trims, 7000 do
  local bodies = {}
  for t = from, min(from + 6999, 7 * trims), 7 do bodies[#bodies + 1] = argv[t + 1] end
  local found = pcall('HMGET', keys[4], unpack(bodies))
  if found['err'] then return typed(4, 'hash', found) end
  for i = 1, #bodies do
    if found[i] then
      floors = floors or {}
      floors[argv[from + 7 * (i - 1)] + 0] = new_floor(found[i])
    end
  end
end

-- The rows, and whether there is nothing yet of any of the records.
local rows, blank
if n == 1 then
  local row = pcall('HGET', manifest, argv[records + stride])
  if type(row) == 'table' then return typed(2, 'hash', row) end
  rows = {row}
else
  local ids = {}
  for i = 1, n do ids[i] = argv[records + stride * i] end
  rows = pcall('HMGET', manifest, unpack(ids, 1, min(1000, n)))
  if rows['err'] then return typed(2, 'hash', rows) end
  for from = 1001, n, 1000 do
    local more = call('HMGET', manifest, unpack(ids, from, min(from + 999, n)))
    for i = 1, #more do rows[from + i - 1] = more[i] end
  end
  blank = true
  for i = 1, n do blank = blank and not rows[i] end
  local tail = first + n
  for from = first + 1, tail, 1000 do
    blank = blank and call('EXISTS', unpack(keys, from, min(from + 999, tail))) == 0
  end
end

-- Whether every entry of a row is assumed or written again.
local function covered(entries, assumed, written)
  local known = {}
  for entry in string.gmatch(assumed .. '\n' .. written, '[^\n]+') do known[entry] = true end
  for entry in string.gmatch(entries, '[^\n]+') do
    if not known[entry] then return false end
  end
  return true
end

-- Holds record i against what its plan assumed: its status, or 1 if it may be written as far as its own state goes.
local function check(i, row)
  local k, a, c = first + i, records + stride * i, conds + conds_step * i
  local mode, cond, assumed = argv[modes + modes_step * i], argv[c], argv[c + 1]
  local kind, alive, value = byte(cond), false, nil -- kind is nil without a condition
  if blank then
    -- There is none.
  elseif kind and kind ~= 119 then -- b, v, f: the bytes count
    value = pcall('GET', keys[k])
    if type(value) == 'table' then return typed(k, 'string', value) end
    alive = value ~= false
  else
    local size = pcall('STRLEN', keys[k])
    if type(size) == 'table' then return typed(k, 'string', size) end
    alive = size > 0 or call('EXISTS', keys[k]) == 1
  end

  if row and sub(row, 1, 8) == argv[a + 1] then return 2 end
  if floor then
    -- Not applied for certain only if nothing has touched the record since before that attempt was sent.
    if seq < floor then return {'unknown'} end
    if row then
      if tonumber(string.match(row, '^%d+', 9)) > floor then return {'unknown'} end
    elseif (mode ~= 'D' or cond ~= '') and dels > floor then
      return {'unknown'}
    end
  end

  if mode == 'C' then
    if alive then return {'exists'} end
  elseif mode == 'R' then
    if not alive then return {'missing'} end
  elseif mode == 'X' then
    if alive then return {'alive'} end
    if not row and assumed == '' and type(pcall('ZSCORE', expiry, argv[a])) ~= 'string' then return {'missing'} end
  elseif mode == 'D' then
    if not alive and not row then return {'missing'} end
  end

  local by_value = false
  if kind then
    if not alive then return {'missing'} end
    local holds = true
    if kind == 119 then -- w
      holds = row and sub(row, 1, 8) == sub(cond, 2)
    else
      if kind == 98 then -- b: a late attempt must not find the bytes come back
        holds = row and sub(row, 1, 8) == sub(cond, 42)
      else -- v, f
        by_value = true
        holds = (row or '') == (kind == 102 and sub(cond, 42) or '')
      end
      holds = holds and redis.sha1hex(value) == sub(cond, 2, 41)
    end
    if not holds then return {'changed', value or call('GET', keys[k]), row or ''} end
  end

  if row then
    local newline = find(row, '\n', 9, true)
    local entries = newline and sub(row, newline + 1) or ''
    if entries ~= assumed and entries ~= argv[a + 2] and not covered(entries, assumed, argv[a + 2]) then
      return {'replan', row}
    end
  elseif alive and not by_value then
    return {'adopt', call('GET', keys[k])}
  end
  return 1
end

local now -- one TIME a call: it moves inside a script while the expiry of keys does not

local reply = {'ok', ''} -- the status of record i is at 2 + i
local refused            -- the ids of the records that are not written, nil without one
local over               -- the ids of those whose lifetime is an instant that is past: their writes are deletes

-- Gives record i a status that keeps it from being written.
local function refuse(i, status)
  reply[2 + i] = status
  refused = refused or {}
  refused[argv[records + stride * i]] = true
end

for i = 1, n do
  local m = modes + modes_step * i
  -- What is put where there is nothing has nothing to be held against.
  local s = blank and not floor and argv[m] == 'P' and argv[conds + conds_step * i] == '' and 1 or check(i, rows[i])
  reply[2 + i] = s
  if s ~= 1 then
    if s ~= 2 and s['err'] then return s end -- of the server, about a key of the right type: a missing permission
    refuse(i, s)
  elseif byte(argv[m + 1]) == 97 then -- a
    now = now or clock()
    if sub(argv[m + 1], 2) + 0 <= now then
      over = over or {}
      over[argv[records + stride * i]] = true
    end
  end
end

-- The groups of operations: the index keys are of their types. In place of the KEYS position and the number of operations
-- as text, ARGV has from here on the position as a number and where the group ends.
local claims, named = false, nil -- whether a unique value is claimed; record by id, once it is needed
local e, amiss = 0, nil
local g = groups
while g <= last do
  local code, position = argv[g], argv[g + 1] + 0
  local width = (code == 'z' or code == 'l' or code == 'k') and 2 or 1
  local to = g + 2 + argv[g + 2] * width
  argv[g + 1], argv[g + 2] = position, to
  if position ~= e then
    e, amiss = position, nil
    local set = code == '+' or code == '-' or code == 'u'
    local size = pcall(set and 'SCARD' or 'ZCARD', keys[e])
    if type(size) == 'table' then
      amiss = typed(e, set and 'set' or 'zset', size)
      if amiss['err'] then return amiss end
    end
  end
  if amiss then
    if not named then
      named = {}
      for i = 1, n do named[argv[records + stride * i]] = i end
    end
    for o = g + 2 + width, to, width do
      local i = named[argv[o]]
      if reply[2 + i] == 1 then refuse(i, amiss) end
    end
  elseif code == 'u' then
    claims = true
  end
  g = to + 1
end

-- A unique value has one holder: one that the set names, or one that claims it in this call. Only a record that passed
-- claims and frees, in the order of the records.
if claims then
  local claimed, freed = {}, {} -- KEYS position -> id
  local adds, removes = {}, {}  -- id -> KEYS positions
  g = groups
  while g <= last do
    local code, to = argv[g], argv[g + 2]
    local into = code == 'u' and adds or code == '-' and removes
    if into then
      for o = g + 3, to do
        local list = into[argv[o]]
        if not list then
          list = {}
          into[argv[o]] = list
        end
        list[#list + 1] = argv[g + 1]
      end
    end
    g = to + 1
  end
  for i = 1, n do
    local id = argv[records + stride * i]
    if reply[2 + i] == 1 and not (over and over[id]) then
      for _, e in ipairs(adds[id] or {}) do
        local holder = claimed[e]
        if not holder then
          holder = call('SRANDMEMBER', keys[e])
          if holder and freed[e] == holder then holder = nil end
        end
        if holder and holder ~= id then
          refuse(i, {'taken', e, holder, call('HGET', manifest, holder) or ''})
          break
        end
      end
      if reply[2 + i] == 1 then
        for _, e in ipairs(adds[id] or {}) do claimed[e] = id end
        if argv[modes + modes_step * i] == 'X' then
          for _, e in ipairs(removes[id] or {}) do freed[e] = id end
        end
      end
    end
  end
end

-- A number as the decimal text that it is: Lua's own conversion rounds from 10^14 up.
local function decimal(x)
  if x < 1e14 then return x .. '' end
  return string.format('%.0f', x)
end

-- Adds a few ids that are due to the reply, from a place that moves with the writes so that callers meet different ones.
local function with_due()
  local limit = argv[5] + 0
  if not noted or limit == 0 then return reply end
  now = now or clock()
  local edge = '(' .. decimal(now)
  local due = call('ZCOUNT', expiry, '-inf', edge)
  if due == 0 then return reply end
  local offset = 0
  if due > limit then offset = (reply[2] + 0) * 7 % (due - limit + 1) end
  for _, id in ipairs(call('ZRANGEBYSCORE', expiry, '-inf', edge, 'LIMIT', offset, limit)) do
    reply[#reply + 1] = id
    reply[#reply + 1] = call('HGET', manifest, id) or ''
  end
  return reply
end

local puts, deletes = 0, 0
for i = 1, n do
  if reply[2 + i] == 1 then
    local mode = argv[modes + modes_step * i]
    if mode == 'D' or mode == 'X' or over and over[argv[records + stride * i]] then deletes = deletes + 1 else puts = puts + 1 end
  end
end
if puts + deletes == 0 then
  reply[2] = call('HGET', meta, 'seq') or '0'
  return reply
end

-- The opening write. The server refuses it when it is out of memory, read-only or not allowed, and then nothing has
-- changed. A call that only deletes opens with one that is allowed when memory is full: it frees some.
if puts == 0 then call('HDEL', meta, '') end
local counter = decimal(call('HINCRBY', meta, 'seq', 1))
reply[2] = counter

-- At most 1000 arguments a command: unpack fails above a few thousand.
local function each(command, target, list, from, to)
  for at = from, to, 1000 do
    call(command, target, unpack(list, at, min(at + 999, to)))
  end
end

-- The entries, key by key, removals first: a value that one record leaves and another takes ends with its new holder.
g = groups
while g <= last do
  local code, key, from, to = argv[g], keys[argv[g + 1]], g + 3, argv[g + 2]
  local command = code == '+' and 'SADD' or code == '-' and 'SREM' or code == 'z' and 'ZADD' or code == 'u' and 'SADD'
    or code == 'y' and 'ZREM' or 'ZADD'
  local trimmed = floors and floors[argv[g + 1]]
  if not refused and not over and not trimmed and code ~= 'l' and code ~= 'k' then
    each(command, key, argv, from, to) -- the arguments stand there as the command takes them
  else
    local take, drop = {}, {}
    local undo = (command == 'SADD' or command == 'SREM') and 'SREM' or 'ZREM'
    local step = (code == 'z' or code == 'l' or code == 'k') and 2 or 1
    for o = from, to, step do
      local id = argv[o + step - 1]
      if not (refused and refused[id]) then
        local member = (code == 'l' or code == 'k') and argv[o] .. id or id
        if trimmed then unlist(trimmed, member) end
        if code == 'k' or command == undo or over and over[id] then
          drop[#drop + 1] = member
        else
          if step == 2 then take[#take + 1] = code == 'z' and argv[o] or '0' end
          take[#take + 1] = member
        end
      end
    end
    each(undo, key, drop, 1, #drop)
    each(command, key, take, 1, #take)
  end
  g = to + 1
end

-- The records, and their rows and notes.
local stored, fresh, gone, notes, unnoted = {}, {}, {}, {}, {}
for i = 1, n do
  if reply[2 + i] == 1 then
    local a, m, key = records + stride * i, modes + modes_step * i, keys[first + i]
    local id, mode, life = argv[a], argv[m], argv[m + 1]
    if mode == 'D' or mode == 'X' or over and over[id] then
      if mode ~= 'X' then call('DEL', key) end
      gone[#gone + 1] = id
      unnoted[#unnoted + 1] = id
    else
      fresh[#fresh + 1] = id
      fresh[#fresh + 1] = argv[a + 2] == '' and argv[a + 1] .. counter or argv[a + 1] .. counter .. '\n' .. argv[a + 2]
      if noted and life == 'f' then unnoted[#unnoted + 1] = id end
      if mode == 'F' then
        -- A fix leaves the record alone.
      elseif life == 'f' then
        stored[#stored + 1] = key
        stored[#stored + 1] = argv[a + 3]
      elseif life == 'k' then
        call('SET', key, argv[a + 3], 'KEEPTTL')
        -- One that had expired, or was persisted by hand, has nothing to keep: a note of its old end would hide it.
        if noted and call('PTTL', key) == -1 then unnoted[#unnoted + 1] = id end
      else
        local due
        if byte(life) == 97 then -- a
          due = sub(life, 2)
        else
          now = now or clock()
          due = decimal(now + life)
        end
        call('SET', key, argv[a + 3], 'PXAT', due)
        notes[#notes + 1] = due
        notes[#notes + 1] = id
      end
    end
  end
end

for at = 1, #stored, 1000 do
  call('MSET', unpack(stored, at, min(at + 999, #stored)))
end
each('HSET', manifest, fresh, 1, #fresh)
each('HDEL', manifest, gone, 1, #gone)
each('ZADD', expiry, notes, 1, #notes)
if noted then each('ZREM', expiry, unnoted, 1, #unnoted) end
if deletes > 0 then call('HSET', meta, 'dels', counter) end

-- The ranked keys go back to their bounds; the best of what went is noted.
if trims > 0 then
  -- Takes out of a ranked key what belongs to records that are due, before it is trimmed: they must not push out those that
  -- live. Their other entries wait for their collection.
  local function drop_due(key, body)
    now = now or clock()
    local edge = '(' .. decimal(now)
    for from = 0, 1800, 200 do
      local ids = call('ZRANGEBYSCORE', expiry, '-inf', edge, 'LIMIT', from, 200)
      for _, id in ipairs(ids) do
        local row = (call('HGET', manifest, id) or '') .. '\n'
        if find(row, '\nz' .. body .. '\n', 1, true) then
          call('ZREM', key, id)
        else
          local _, last = find(row, '\nl' .. body .. '\t', 1, true)
          if last then
            local digits = string.match(row, '^%x*', last + 1)
            local prefix = string.gsub(digits, '%x%x', function(pair) return string.char(tonumber(pair, 16)) end)
            call('ZREM', key, prefix .. id)
          end
        end
      end
      if #ids < 200 then return end
    end
  end

  for t = 7, 7 * trims, 7 do
    local key, top, keep = keys[argv[t] + 0], argv[t + 2] == 'top', argv[t + 3] + 0
    if argv[t + 5] ~= '' then
      -- Out of the window is not trimmed: it is no member any more, and raises no floor.
      local time = call('TIME')
      -- By whole units: one that the window has not left yet stays, so that nothing younger goes.
      local oldest = math.floor((time[1] * 1000000 + time[2] - argv[t + 5]) / argv[t + 6])
      call('ZREMRANGEBYSCORE', key, '-inf', '(' .. string.format('%.0f', oldest))
    end
    if keep > 0 then
      local size = call('ZCARD', key)
      if noted and size > keep + argv[t + 4] then
        drop_due(key, argv[t + 1])
        size = call('ZCARD', key)
      end
      if size > keep + argv[t + 4] then
        local from, to = 0, size - keep - 1
        if not top then from, to = keep, size - 1 end
        floors = floors or {}
        local trimmed = floors[argv[t] + 0] or new_floor('')
        floors[argv[t] + 0] = trimmed
        list_trimmed(trimmed, key, from, to, top, counter)
        call('ZREMRANGEBYRANK', key, from, to)
      end
    end
  end
  if floors then
    local moved, emptied = {}, {}
    for t = 7, 7 * trims, 7 do
      local trimmed = floors[argv[t] + 0]
      if trimmed and trimmed.moved then
        local text = format_floor(trimmed)
        if text == '' then
          emptied[#emptied + 1] = argv[t + 1]
        else
          moved[#moved + 1] = argv[t + 1]
          moved[#moved + 1] = text
        end
      end
    end
    each('HSET', keys[4], moved, 1, #moved)
    each('HDEL', keys[4], emptied, 1, #emptied)
  end
end

if fence ~= '' then call('HINCRBY', meta, 'built', puts + deletes) end
return with_due()
