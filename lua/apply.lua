-- apply: moves a batch of records of one partition and all of their index entries in one step.
--
-- A record whose conditions or assumptions do not hold is left alone and says so in its status; the others are
-- written. Everything is checked before the first write, because a script does not roll back.
--
-- KEYS
--   1            meta        HASH   generations, write counter, index states
--   2            manifest    HASH   id -> row
--   3            expiry      ZSET   id by the instant at which its record is due, in ms
--   4            floor       HASH   entry body -> what a ranked index has trimmed: 'trims score member' of the best
--   5 .. 4+n     records     STRING one per record, in the order of ARGV
--   5+n ..       entries     SET, ZSET   every index key that an operation names
--
-- ARGV
--   1  schema generation of the caller, a space, and the epoch of the partition as the caller knows it
--   2  n, the number of records
--   3  floor: '' on a first attempt; else the write counter seen before an attempt that may have been applied
--   then for each record
--      id, write id (8 bytes),
--      mode       P put, C create, R replace, D delete, X collect (remove what is left of a record that is gone),
--                 F fix (write entries and row again, not the record)
--      condition  '' none, 'w' + write id of the row, 'v' + SHA-1 of the stored bytes (for a record without a row),
--                 'f' + SHA-1 of the stored bytes + row ('' for none): nothing has moved since
--      assumed    the entries that the plan removes or keeps, as in a row
--      entries    the entries of the new state, as in a row
--      value      the bytes to store
--      lifetime   'f' for ever, 'k' keep what there is, milliseconds from now, or 'a' + an instant in milliseconds since
--                 1970; an instant that is past makes the write a delete
--      m          the number of operations, then m times: code, KEYS position, argument
--      code       SET: + add, u add as the only holder, - remove
--                 ZSET: z add with the argument as score, l add with score 0 as argument .. id, y remove argument .. id
--   then the number of trims, and for each
--      KEYS position, body of the entry, 'top' or 'low' (which end is kept), how many are kept, how many more may be there,
--      largest age and unit of the score, both in microseconds ('' and '' without)
--   then the fence of the builder that writes, '' for anybody else
--   then how many ids that are due the caller wants to be told
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
--   {'changed'}                 the condition does not hold
--   {'taken', KEYS position, holder, row of the holder}   another id holds a unique value; row '' if it has none
--   {'type', KEYS position, found type}   a foreign value sits at the record's key or at an entry's key
--   {'unknown'}                 an earlier attempt may have been applied and overwritten since
--
-- Errors
--   those of the server, raised before anything is written: OOM, READONLY, NOPERM
--
-- Cost
--   O(records + operations), a ZSET operation O(log members); per record one TYPE and one SET, per index key one TYPE
--   and one SADD, SREM, ZADD or ZREM, per ranked key one ZCARD, and where it is over its bound a trim of O(trimmed);
--   per call one HGET of meta, one HMGET of the manifest, one EXISTS of expiry, one HINCRBY and one HSET.

local meta, manifest, expiry = KEYS[1], KEYS[2], KEYS[3]
local n, floor = ARGV[2] + 0, tonumber(ARGV[3])
local first = 4 -- KEYS position before the first record
local call, pcall = redis.call, redis.pcall
local sub, find = string.sub, string.find

-- The generation. Nearly always nobody is older or newer than the caller.
local schema = pcall('HGET', meta, 'schema')
if type(schema) == 'table' then return typed(1, 'hash', schema) end
if not schema then return {'meta'} end
local space = find(schema, ' ', 1, true) or 0
if sub(schema, space + 1) ~= ARGV[1] then
  local newest, epoch = string.match(schema, '^%d+ (%d+) (%S*)$')
  if not epoch then return {'meta'} end
  local generation, known = string.match(ARGV[1], '^(%d+) (%S*)$')
  if epoch ~= known or generation + 0 > newest + 0 then return {'meta'} end
  local min = sub(schema, 1, space - 1)
  if generation + 0 < min + 0 then return {'schema', min} end
end

-- Counters of the partition: only a repeated attempt needs them before the write.
local seq, dels
if floor then
  local counters = call('HMGET', meta, 'seq', 'dels')
  seq, dels = tonumber(counters[1] or 0), tonumber(counters[2] or 0)
end

-- What the records of a batch have in common; a single record does without.
local types, claimed, freed
if n > 1 then
  types = {}   -- KEYS position -> type found there
  claimed = {} -- KEYS position -> id that claims the unique value in this call
  freed = {}   -- KEYS position -> id whose left-over claim is collected in this call
end

local wanted = {['+'] = 'set', ['u'] = 'set', ['-'] = 'set', ['z'] = 'zset', ['l'] = 'zset', ['y'] = 'zset'}

-- Whether every entry of a row is assumed or written again.
local function covered(entries, assumed, written)
  local known = {}
  for entry in string.gmatch(assumed .. '\n' .. written, '[^\n]+') do known[entry] = true end
  for entry in string.gmatch(entries, '[^\n]+') do
    if not known[entry] then return false end
  end
  return true
end

local now -- one TIME a call: it moves inside a script while the expiry of keys does not

-- Whether a lifetime is an instant that is past.
local function past(life)
  if sub(life, 1, 1) ~= 'a' then return false end
  now = now or clock()
  return sub(life, 2) + 0 <= now
end

-- Holds the record at KEYS position k, whose plan starts at ARGV position a, against what its plan assumed: nil if it may
-- be written, else its status.
local function check(k, a, row)
  local id, mode, cond = ARGV[a], ARGV[a + 2], ARGV[a + 3]
  local t = typeof(k)
  if t ~= 'none' and t ~= 'string' then return {'type', k, t} end
  local alive = t == 'string'

  if row and sub(row, 1, 8) == ARGV[a + 1] then return 2 end
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
    if not row and ARGV[a + 8] == '0' and type(pcall('ZSCORE', expiry, id)) ~= 'string' then return {'missing'} end
  elseif mode == 'D' then
    if not alive and not row then return {'missing'} end
  end

  local by_value = false
  if cond ~= '' then
    if not alive then return {'missing'} end
    if sub(cond, 1, 1) == 'w' then
      if not row or sub(row, 1, 8) ~= sub(cond, 2) then return {'changed'} end
    else
      by_value = true
      local want = ''
      if sub(cond, 1, 1) == 'f' then want = sub(cond, 42) end
      if (row or '') ~= want or redis.sha1hex(call('GET', KEYS[k])) ~= sub(cond, 2, 41) then return {'changed'} end
    end
  end

  if row then
    local newline = find(row, '\n', 9, true)
    local entries = newline and sub(row, newline + 1) or ''
    if entries ~= ARGV[a + 5] and entries ~= ARGV[a + 4] and not covered(entries, ARGV[a + 4], ARGV[a + 5]) then
      return {'replan', row}
    end
  elseif alive and not by_value then
    return {'adopt', call('GET', KEYS[k])}
  end

  local gone = past(ARGV[a + 7])
  local last = a + 6 + 3 * ARGV[a + 8]
  for o = a + 9, last, 3 do
    local e = ARGV[o + 1] + 0
    local found = types and types[e]
    if not found then
      found = typeof(e)
      if types then types[e] = found end
    end
    if found ~= 'none' and found ~= wanted[ARGV[o]] then return {'type', e, found} end
    if ARGV[o] == 'u' and not gone then
      local holder = claimed and claimed[e]
      if not holder and found == 'set' then
        holder = call('SRANDMEMBER', KEYS[e])
        if holder and freed and freed[e] == holder then holder = nil end
      end
      if holder and holder ~= id then
        return {'taken', e, holder, call('HGET', manifest, holder) or ''}
      end
    end
  end
  if n > 1 then
    -- Only a record that passed claims and frees.
    for o = a + 9, last, 3 do
      if ARGV[o] == 'u' and not gone then
        claimed[ARGV[o + 1] + 0] = id
      elseif mode == 'X' and ARGV[o] == '-' then
        freed[ARGV[o + 1] + 0] = id
      end
    end
  end
  return nil
end

-- A number as the decimal text that it is: Lua's own conversion rounds from 10^14 up.
local function decimal(x)
  if x < 1e14 then return x .. '' end
  return string.format('%.0f', x)
end

-- The opening write. The server refuses it when it is out of memory, read-only or not allowed, and then nothing has
-- changed. A call that only deletes opens with one that is allowed when memory is full: it frees some.
local function open(puts)
  if puts == 0 then call('HDEL', meta, '') end
  return decimal(call('HINCRBY', meta, 'seq', 1))
end

-- Where the trims begin in ARGV.
local trims = 4
for _ = 1, n do trims = trims + 9 + 3 * ARGV[trims + 8] end
local fence = ARGV[trims + 1 + 7 * ARGV[trims]]
if fence ~= '' then
  if call('HGET', meta, 'fence') ~= fence then return {'fence'} end
end
if ARGV[trims] ~= '0' then
  local t = typeof(4)
  if t ~= 'none' and t ~= 'hash' then return {'type', 4, t} end
end

-- Without the key no record of the partition has a lifetime, and no note needs to go.
local noted = call('EXISTS', expiry) == 1
if noted then
  local t = typeof(3)
  if t ~= 'zset' then return {'type', 3, t} end
end
-- Stores the record at KEYS position k; returns the instant at which it is due, if it has a lifetime of its own.
local function store(k, value, life)
  if life == 'f' then
    call('SET', KEYS[k], value)
  elseif life == 'k' then
    call('SET', KEYS[k], value, 'KEEPTTL')
  else
    local due
    if sub(life, 1, 1) == 'a' then
      due = sub(life, 2)
    else
      now = now or clock()
      due = decimal(now + life)
    end
    call('SET', KEYS[k], value, 'PXAT', due)
    return due
  end
end

-- The row of a record just written.
local function fresh_row(a, counter)
  local row = ARGV[a + 1] .. counter
  if ARGV[a + 5] ~= '' then row = row .. '\n' .. ARGV[a + 5] end
  return row
end

-- The order of bytes, which is that of members with one score. Lua's own comparison follows the locale.
local function before(x, y)
  local size = math.min(#x, #y)
  for i = 1, size do
    local p, q = string.byte(x, i), string.byte(y, i)
    if p ~= q then return p < q end
  end
  return #x < #y
end

-- Whether (score, member) lies nearer to the kept end than a floor.
local function beats(score, member, floor_score, floor_member, top)
  local x, y = number(score), number(floor_score)
  if x == y then
    if member == floor_member then return false end
    return before(floor_member, member) == top
  end
  return (x > y) == top
end

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

-- Brings the ranked keys back to their bounds and notes the best that went.
local function trim()
  for t = trims + 1, trims + 7 * ARGV[trims], 7 do
    local key, top, keep = KEYS[ARGV[t] + 0], ARGV[t + 2] == 'top', ARGV[t + 3] + 0
    if ARGV[t + 5] ~= '' then
      -- Out of the window is not trimmed: it is no member any more, and raises no floor.
      local time = call('TIME')
      -- By whole units: one that the window has not left yet stays, so that nothing younger goes.
      local oldest = math.floor((time[1] * 1000000 + time[2] - ARGV[t + 5]) / ARGV[t + 6])
      call('ZREMRANGEBYSCORE', key, '-inf', '(' .. string.format('%.0f', oldest))
    end
    if keep > 0 then
      local size = call('ZCARD', key)
      if noted and size > keep + ARGV[t + 4] then
        drop_due(key, ARGV[t + 1])
        size = call('ZCARD', key)
      end
      if size > keep + ARGV[t + 4] then
        local from, to, edge = 0, size - keep - 1, size - keep - 1
        if not top then from, to, edge = keep, size - 1, keep end
        local best = call('ZRANGE', key, edge, edge, 'WITHSCORES')
        local old = call('HGET', KEYS[4], ARGV[t + 1])
        local count, score, member = 0, nil, nil
        if old then
          count, score, member = string.match(old, '^(%d+) (%S+) (.*)$')
        end
        if not old or beats(best[2], best[1], score, member, top) then score, member = best[2], best[1] end
        call('ZREMRANGEBYRANK', key, from, to)
        call('HSET', KEYS[4], ARGV[t + 1], decimal(count + 1) .. ' ' .. score .. ' ' .. member)
      end
    end
  end
end

-- Adds a few ids that are due to a reply, from a place that moves with the writes so that callers meet different ones.
local function with_due(reply)
  local limit = ARGV[#ARGV] + 0
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

if n == 1 then
  local id, mode, k = ARGV[4], ARGV[6], first + 1
  local row = pcall('HGET', manifest, id)
  if type(row) == 'table' then return typed(2, 'hash', row) end
  local status = check(k, 4, row)
  if status then return {'ok', call('HGET', meta, 'seq') or '0', status} end
  local expired = past(ARGV[11])
  local deletes = mode == 'D' or mode == 'X' or expired
  local counter = open(deletes and 0 or 1)
  local last = 10 + 3 * ARGV[12]
  for o = 13, last, 3 do
    local code = ARGV[o]
    if code == '-' or expired and (code == '+' or code == 'u') then
      call('SREM', KEYS[ARGV[o + 1] + 0], id)
    elseif code == 'y' or expired then
      call('ZREM', KEYS[ARGV[o + 1] + 0], (code == 'z' and '' or ARGV[o + 2]) .. id)
    end
  end
  for o = 13, expired and 0 or last, 3 do
    local code = ARGV[o]
    if code == '+' or code == 'u' then
      call('SADD', KEYS[ARGV[o + 1] + 0], id)
    elseif code == 'z' then
      call('ZADD', KEYS[ARGV[o + 1] + 0], ARGV[o + 2], id)
    elseif code == 'l' then
      call('ZADD', KEYS[ARGV[o + 1] + 0], 0, ARGV[o + 2] .. id)
    end
  end
  if deletes then
    if mode ~= 'X' then call('DEL', KEYS[k]) end
    call('HDEL', manifest, id)
    call('HSET', meta, 'dels', counter)
    if noted then call('ZREM', expiry, id) end
  else
    local due
    if mode ~= 'F' then due = store(k, ARGV[10], ARGV[11]) end
    call('HSET', manifest, id, fresh_row(4, counter))
    if due then
      call('ZADD', expiry, due, id)
    elseif noted and ARGV[11] == 'f' then
      call('ZREM', expiry, id)
    end
  end
  trim()
  if fence ~= '' then call('HINCRBY', meta, 'built', 1) end
  return with_due({'ok', counter, 1})
end

-- A batch: where each plan starts in ARGV, then the rows, the checks, and the writes grouped by key.
local at, ids = {}, {}
local p = 4
for i = 1, n do
  at[i] = p
  ids[i] = ARGV[p]
  p = p + 9 + 3 * ARGV[p + 8]
end
local rows = pcall('HMGET', manifest, unpack(ids, 1, math.min(1000, n)))
if rows['err'] then return typed(2, 'hash', rows) end
for from = 1001, n, 1000 do
  local more = call('HMGET', manifest, unpack(ids, from, math.min(from + 999, n)))
  for i = 1, #more do rows[from + i - 1] = more[i] end
end

local status = {}
local reply = {'ok', ''}
local puts, deletes = 0, 0
for i = 1, n do
  local s = check(first + i, at[i], rows[i])
  status[i] = s or 1
  reply[2 + i] = status[i]
  if not s then
    local mode = ARGV[at[i] + 2]
    if mode == 'D' or mode == 'X' or past(ARGV[at[i] + 7]) then deletes = deletes + 1 else puts = puts + 1 end
  end
end
if puts + deletes == 0 then
  reply[2] = call('HGET', meta, 'seq') or '0'
  return reply
end

local counter = open(puts)
reply[2] = counter
local sadd, srem, zadd, zrem = {}, {}, {}, {}
local fresh, gone, notes, unnoted = {}, {}, {}, {}
for i = 1, n do
  if status[i] == 1 then
    local a = at[i]
    local id, mode, life = ids[i], ARGV[a + 2], ARGV[a + 7]
    local expired = past(life)
    for o = a + 9, a + 6 + 3 * ARGV[a + 8], 3 do
      local code, e, member = ARGV[o], ARGV[o + 1] + 0, id
      local to = sadd
      if code == '-' or expired and (code == '+' or code == 'u') then
        to = srem
      elseif code == 'y' or expired then
        to, member = zrem, (code == 'z' and '' or ARGV[o + 2]) .. id
        code = 'y'
      elseif code == 'z' or code == 'l' then
        to = zadd
      end
      local list = to[e]
      if not list then
        list = {}
        to[e] = list
      end
      if code == 'z' then
        list[#list + 1] = ARGV[o + 2]
      elseif code == 'l' then
        list[#list + 1] = '0'
        member = ARGV[o + 2] .. id
      end
      list[#list + 1] = member
    end
    if mode == 'D' or mode == 'X' or expired then
      if mode ~= 'X' then call('DEL', KEYS[first + i]) end
      gone[#gone + 1] = id
      unnoted[#unnoted + 1] = id
    else
      local due
      if mode ~= 'F' then due = store(first + i, ARGV[a + 6], life) end
      fresh[#fresh + 1] = id
      fresh[#fresh + 1] = fresh_row(a, counter)
      if due then
        notes[#notes + 1] = due
        notes[#notes + 1] = id
      elseif life == 'f' then
        unnoted[#unnoted + 1] = id
      end
    end
  end
end

-- At most 1000 arguments a command: unpack fails above a few thousand.
local function each(command, target, list)
  for from = 1, #list, 1000 do
    call(command, target, unpack(list, from, math.min(from + 999, #list)))
  end
end

-- Removals first: a value that one record leaves and another takes ends with its new holder.
for e, members in pairs(srem) do each('SREM', KEYS[e], members) end
for e, members in pairs(zrem) do each('ZREM', KEYS[e], members) end
for e, members in pairs(sadd) do each('SADD', KEYS[e], members) end
for e, members in pairs(zadd) do each('ZADD', KEYS[e], members) end
each('HSET', manifest, fresh)
each('HDEL', manifest, gone)
each('ZADD', expiry, notes)
if noted then each('ZREM', expiry, unnoted) end
if deletes > 0 then call('HSET', meta, 'dels', counter) end
trim()
if fence ~= '' then call('HINCRBY', meta, 'built', puts + deletes) end
return with_due(reply)
