-- inspect: some records with their rows and, for each, whether it is a member where it should be: all at one instant.
--
-- KEYS
--   1            manifest  HASH
--   2            expiry    ZSET
--   3            floor     HASH
--   4 .. 3+n     records   STRING     one per record, in the order of ARGV
--   4+n ..       entries   SET, ZSET  every index key that is asked about
--
-- ARGV
--   1  n, the number of records
--   then for each record
--      id, m, then m times: kind ('s' SET, 'z' ZSET), KEYS position, member, field of the floor hash ('' asks for none)
--
-- Returns
--   {'ok', clock in microseconds, record 1, ...}
--   {'type', KEYS position, found type}   manifest, expiry or floor is something else
--   A record is an array: type of its key, value, row, due (false where there is none; due is the note of its expiry in ms),
--   then for each entry two texts: '' no member, '1' or the score of a member, '!' and the type of a foreign value; and
--   the floor, '' without.
--
-- Errors
--   those of the server
--
-- Cost
--   O(records + entries); per record one TYPE, GET, HGET and ZSCORE, per entry one SISMEMBER or ZSCORE and one HGET of floor.

local n = ARGV[1] + 0
local time = redis.call('TIME')
local reply = {'ok', string.format('%.0f', time[1] * 1000000 + time[2])}
local a = 2
for i = 1, n do
  local k, id, m = 3 + i, ARGV[a], ARGV[a + 1] + 0
  local found, value = typeof(k), false
  if found == 'string' then value = redis.call('GET', KEYS[k]) end
  local row = redis.pcall('HGET', KEYS[1], id)
  if type(row) == 'table' then return typed(1, 'hash', row) end
  local due = redis.pcall('ZSCORE', KEYS[2], id)
  if type(due) == 'table' then return typed(2, 'zset', due) end
  local record = {found, value, row, due}
  for o = a + 2, a - 2 + 4 * m + 1, 4 do
    local e = ARGV[o + 1] + 0
    local got, want
    if ARGV[o] == 's' then
      got, want = redis.pcall('SISMEMBER', KEYS[e], ARGV[o + 2]), 'set'
    else
      got, want = redis.pcall('ZSCORE', KEYS[e], ARGV[o + 2]), 'zset'
    end
    if type(got) == 'table' then
      local kind = typeof(e)
      if kind == want then return got end
      got = '!' .. kind
    elseif not got or got == 0 then
      got = ''
    else
      got = got .. ''
    end
    local floor = ''
    if ARGV[o + 3] ~= '' then
      floor = redis.pcall('HGET', KEYS[3], ARGV[o + 3]) or ''
      if type(floor) == 'table' then return typed(3, 'hash', floor) end
    end
    record[#record + 1] = got
    record[#record + 1] = floor
  end
  reply[#reply + 1] = record
  a = a + 2 + 4 * m
end
return reply
