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
--   {'ok', floor, hidden, more, size, score, member, ...}   floor: as in floor.lua, or ''; hidden counts the members
--                                          left out as due; more '1' if members follow the page; size: members within
--                                          the bounds, due ones included; score: of the last member, '' without one
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
local call, pcall = redis.call, redis.pcall
local key, limit, desc = KEYS[4], ARGV[5] + 0, ARGV[4] == 'desc'
local lexical = ARGV[3] == 'l'

local size = pcall('ZCARD', key)
if type(size) == 'table' then return typed(4, 'zset', size) end
local floor = pcall('HGET', KEYS[3], ARGV[2])
if type(floor) == 'table' then return typed(3, 'hash', floor) end

-- The ranks [low, high) that the bounds leave. Scores are counted by closed bounds only: not every server takes an open one
-- at infinity.
local low, high = 0, size
local bound = ARGV[6]
if bound == '+' then
  low = size
elseif bound ~= '-inf' and bound ~= '-' then
  local open, rest = string.sub(bound, 1, 1), string.sub(bound, 2)
  if lexical then
    low = call('ZLEXCOUNT', key, '-', (open == '[' and '(' or '[') .. rest)
  elseif open == '(' then
    low = call('ZCOUNT', key, '-inf', rest)
  else
    low = size - call('ZCOUNT', key, bound, '+inf')
  end
end
bound = ARGV[7]
if bound ~= '+inf' and bound ~= '+' then
  local open, rest = string.sub(bound, 1, 1), string.sub(bound, 2)
  if lexical then
    high = size - call('ZLEXCOUNT', key, (open == '[' and '(' or '[') .. rest, '+')
  elseif open == '(' then
    high = size - call('ZCOUNT', key, rest, '+inf')
  else
    high = call('ZCOUNT', key, '-inf', bound)
  end
end
if ARGV[10] ~= '' then
  local t = call('TIME')
  local oldest = math.floor((t[1] * 1000000 + t[2] - ARGV[10]) / ARGV[11])
  -- What was trimmed is out of the window by now, all of it.
  local best = floor and number(string.match(floor, '^%d+%+? (%S+) ') or '')
  if best and best < oldest then floor = false end
  low = math.max(low, call('ZCOUNT', key, '-inf', '(' .. string.format('%.0f', oldest)))
end
local within = math.max(0, high - low)

if ARGV[9] ~= '' then
  -- The rank of the cursor's pair, or the one that it would have.
  local member, from, to, ties = ARGV[9], nil, nil, nil
  if lexical then
    from = call('ZLEXCOUNT', key, '-', '(' .. member)
    ties = from + 1 -- members are equal only as a whole
  else
    from = size - call('ZCOUNT', key, ARGV[8], '+inf')
    ties = from + call('ZCOUNT', key, ARGV[8], ARGV[8])
    to = ties
    while from < to do
      local middle = math.floor((from + to) / 2)
      if before(call('ZRANGE', key, middle, middle)[1], member) then from = middle + 1 else to = middle end
    end
  end
  if desc then
    high = math.min(high, from)
  else
    -- The same id beyond the ties has moved on to another score, and is another pair.
    if from < ties and call('ZRANGE', key, from, from)[1] == member then from = from + 1 end
    low = math.max(low, from)
  end
end

local hidden, last = 0, nil
local due = call('EXISTS', KEYS[2]) == 1
local now = due and clock()
if limit == 0 then
  -- Only the size is asked for: how many of them are due.
  if not due or within == 0 then return {'ok', floor or '', 0, '0', within, ''} end
  if lexical then return {'ok', floor or '', 0, '1', within, ''} end
  local from, text = 0, '(' .. string.format('%.0f', now)
  while true do
    local ids = pcall('ZRANGEBYSCORE', KEYS[2], '-inf', text, 'LIMIT', from, 1000)
    if ids['err'] then return typed(2, 'zset', ids) end
    for _, id in ipairs(ids) do
      local rank = call('ZRANK', key, id)
      if rank and rank >= low and rank < high then hidden = hidden + 1 end
    end
    if #ids < 1000 then return {'ok', floor or '', hidden, '0', within, ''} end
    from = from + 1000
  end
end

local reply, taken = {'ok', floor or '', 0, '0', within, ''}, 0
while low < high and taken < limit do
  local count = math.min(limit - taken, high - low, 500)
  local page
  if desc then
    page = call('ZREVRANGE', key, size - high, size - high + count - 1)
    high = high - count
  else
    page = call('ZRANGE', key, low, low + count - 1)
    low = low + count
  end
  local notes
  if due then
    local ids = page
    if lexical then
      ids = {}
      for i, member in ipairs(page) do
        local before_id = ARGV[12]
        if before_id == '' then
          local _, last = string.find(member, '\0\1', 1, true)
          before_id = last or 0
        end
        ids[i] = string.sub(member, before_id + 1)
      end
    end
    notes = pcall('ZMSCORE', KEYS[2], unpack(ids))
    if notes['err'] then return typed(2, 'zset', notes) end
  end
  for i, member in ipairs(page) do
    if notes and notes[i] and number(notes[i]) < now then
      hidden = hidden + 1
    else
      taken = taken + 1
      reply[6 + taken] = member
      last = member
    end
  end
end
reply[3] = hidden
if low < high then reply[4] = '1' end
-- Of the page only the last score is told: writing a score as text costs the server more than finding its member.
if last then reply[6] = call('ZSCORE', key, last) end
return reply
