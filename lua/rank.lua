-- rank: a page of a ranked index, in order, from a bound or a cursor on.
--
-- KEYS
--   1  meta     HASH
--   2  expiry   ZSET
--   3  floor    HASH
--   4  entries  ZSET   the ranked key
--
-- ARGV
--   1  state field of the index in meta
--   2  body of the entry: its field in floor
--   3  kind: 'z' by score, 'l' by the bytes of the members
--   4  direction: 'desc' or 'asc'
--   5  page size; 0 asks for size and hidden alone (by the bytes of the members with lifetimes about: more is '1', and
--      hidden is not known)
--   6  lower bound: as ZCOUNT takes it for 'z' ('-inf', '5', '(5'), as ZLEXCOUNT for 'l' ('-', '[x', '(x'; a lower '+'
--      is above everything)
--   7  upper bound, likewise
--   8  score after which the page begins, '' at the start
--   9  member after which the page begins, '' at the start; for 'l' it alone counts
--   10 largest age in microseconds, '' without
--   11 unit of the scores in microseconds, '' without
--   12 for 'l' how many bytes of a member stand before its id, '' where they end with the bytes 0 and 1
--
-- Returns
--   {'ok', floor, hidden, more, size, member, score, ...}   floor: 'trims score member' or ''; hidden counts the members
--                                          left out as due; more '1' if members follow the page; size: members within
--                                          the bounds, due ones included
--   {'meta'}                               the partition has no meta
--   {'state', state}                       the index is not ready; '' if the partition does not know it
--   {'type', KEYS position, found type}
--
-- Errors
--   those of the server
--
-- Cost
--   O(log members + page); a cursor costs O(log ties) look-ups of one member each.

local refusal = unready(ARGV[1])
if refusal then return refusal end
local key, limit, desc = KEYS[4], ARGV[5] + 0, ARGV[4] == 'desc'
local lexical = ARGV[3] == 'l'

local size = redis.pcall('ZCARD', key)
if type(size) == 'table' then return typed(4, 'zset', size) end
local floor = redis.pcall('HGET', KEYS[3], ARGV[2])
if type(floor) == 'table' then return typed(3, 'hash', floor) end

-- The ranks [low, high) that the bounds leave. Scores are counted by closed bounds only: not every server takes an open one
-- at infinity.
local function below(bound)
  if bound == '-inf' or bound == '-' then return 0 end
  if bound == '+' then return size end
  local mark = string.sub(bound, 1, 1)
  if lexical then
    local rest = string.sub(bound, 2)
    return redis.call('ZLEXCOUNT', key, '-', (mark == '[' and '(' or '[') .. rest)
  end
  if mark == '(' then return redis.call('ZCOUNT', key, '-inf', string.sub(bound, 2)) end
  return size - redis.call('ZCOUNT', key, bound, '+inf')
end

local function above(bound)
  if bound == '+inf' or bound == '+' then return 0 end
  local mark = string.sub(bound, 1, 1)
  if lexical then
    local rest = string.sub(bound, 2)
    return redis.call('ZLEXCOUNT', key, (mark == '[' and '(' or '[') .. rest, '+')
  end
  if mark == '(' then return redis.call('ZCOUNT', key, string.sub(bound, 2), '+inf') end
  return size - redis.call('ZCOUNT', key, '-inf', bound)
end

local low, high = below(ARGV[6]), size - above(ARGV[7])
if ARGV[10] ~= '' then
  local t = redis.call('TIME')
  local oldest = math.floor((t[1] * 1000000 + t[2] - ARGV[10]) / ARGV[11])
  -- What was trimmed is out of the window by now, all of it.
  local best = floor and number(string.match(floor, '^%d+ (%S+)'))
  if best and best < oldest then floor = false end
  low = math.max(low, redis.call('ZCOUNT', key, '-inf', '(' .. string.format('%.0f', oldest)))
end
local within = math.max(0, high - low)

-- The order of bytes, which is that of members with one score. Lua's own comparison follows the locale.
local function before(x, y)
  for i = 1, math.min(#x, #y) do
    local p, q = string.byte(x, i), string.byte(y, i)
    if p ~= q then return p < q end
  end
  return #x < #y
end

if ARGV[9] ~= '' then
  -- The rank of the cursor's pair, or the one that it would have.
  local member, from, to, ties = ARGV[9], nil, nil, nil
  if lexical then
    from = redis.call('ZLEXCOUNT', key, '-', '(' .. member)
    ties = from + 1 -- members are equal only as a whole
  else
    from = size - redis.call('ZCOUNT', key, ARGV[8], '+inf')
    ties = from + redis.call('ZCOUNT', key, ARGV[8], ARGV[8])
    to = ties
    while from < to do
      local middle = math.floor((from + to) / 2)
      if before(redis.call('ZRANGE', key, middle, middle)[1], member) then from = middle + 1 else to = middle end
    end
  end
  if desc then
    high = math.min(high, from)
  else
    -- The same id beyond the ties has moved on to another score, and is another pair.
    if from < ties and redis.call('ZRANGE', key, from, from)[1] == member then from = from + 1 end
    low = math.max(low, from)
  end
end

local function id_of(member)
  if not lexical then return member end
  if ARGV[12] ~= '' then return string.sub(member, ARGV[12] + 1) end
  local _, last = string.find(member, '\0\1', 1, true)
  return string.sub(member, (last or 0) + 1)
end

local reply = {'ok', floor or '', 0, '0', within}
local due = redis.call('EXISTS', KEYS[2]) == 1
local now = due and clock()
if limit == 0 then
  -- Only the size is asked for: how many of them are due.
  if not due or within == 0 then return reply end
  if lexical then
    reply[4] = '1'
    return reply
  end
  local from, text = 0, '(' .. string.format('%.0f', now)
  while true do
    local ids = redis.pcall('ZRANGEBYSCORE', KEYS[2], '-inf', text, 'LIMIT', from, 1000)
    if ids['err'] then return typed(2, 'zset', ids) end
    for _, id in ipairs(ids) do
      local rank = redis.call('ZRANK', key, id)
      if rank and rank >= low and rank < high then reply[3] = reply[3] + 1 end
    end
    if #ids < 1000 then return reply end
    from = from + 1000
  end
end
local taken = 0
while low < high and taken < limit do
  local count = math.min(limit - taken, high - low, 500)
  local page
  if desc then
    page = redis.call('ZREVRANGE', key, size - high, size - high + count - 1, 'WITHSCORES')
    high = high - count
  else
    page = redis.call('ZRANGE', key, low, low + count - 1, 'WITHSCORES')
    low = low + count
  end
  local notes
  if due then
    local ids = {}
    for i = 1, #page, 2 do ids[#ids + 1] = id_of(page[i]) end
    notes = redis.pcall('ZMSCORE', KEYS[2], unpack(ids))
    if notes['err'] then return typed(2, 'zset', notes) end
  end
  for i = 1, #page, 2 do
    local at = notes and notes[(i + 1) / 2]
    if at and number(at) < now then
      reply[3] = reply[3] + 1
    else
      reply[#reply + 1] = page[i]
      reply[#reply + 1] = page[i + 1]
      taken = taken + 1
    end
  end
end
if low < high then reply[4] = '1' end
return reply
