-- probe: tries every command of the other scripts on a scratch key, so that a missing permission shows before any write.
--
-- KEYS
--   1  probe  any  a scratch key of the partition; gone afterwards
--
-- ARGV
--   none
--
-- Returns
--   {'ok'}
--   {'denied', command, text of the server's error}   the first command that the server refused
--
-- Errors
--   none of its own
--
-- Cost
--   about forty commands on a key that stays empty between them.

local key = KEYS[1]
local steps = {
  {'TYPE', key}, {'EXISTS', key}, {'STRLEN', key}, {'TIME'},
  {'DEL', key},
  {'SET', key, '1', 'PXAT', '99999999999999'}, {'SET', key, '1', 'KEEPTTL'}, {'GET', key}, {'PTTL', key}, {'MSET', key, '1'}, {'MGET', key},
  {'PEXPIREAT', key, '99999999999999'}, {'PERSIST', key}, {'DEL', key},
  {'HINCRBY', key, 'f', '1'}, {'HSET', key, 'g', '1'}, {'HGET', key, 'f'}, {'HMGET', key, 'f'}, {'HGETALL', key},
  {'HDEL', key, 'f', 'g'}, {'DEL', key},
  {'SADD', key, 'm'}, {'SCARD', key}, {'SRANDMEMBER', key}, {'SMEMBERS', key}, {'SSCAN', key, '0'}, {'SMISMEMBER', key, 'm'},
  {'SISMEMBER', key, 'm'},
  {'SREM', key, 'm'}, {'DEL', key},
  {'ZADD', key, '1', 'm'}, {'ZMSCORE', key, 'm'}, {'ZSCORE', key, 'm'}, {'ZCARD', key}, {'ZCOUNT', key, '-inf', '+inf'},
  {'ZLEXCOUNT', key, '-', '+'}, {'ZRANGE', key, '0', '-1'}, {'ZREVRANGE', key, '0', '-1'}, {'ZRANK', key, 'm'},
  {'ZRANGEBYSCORE', key, '-inf', '+inf', 'LIMIT', '0', '1'}, {'ZREMRANGEBYSCORE', key, '5', '6'},
  {'ZREMRANGEBYRANK', key, '5', '6'}, {'ZREM', key, 'm'}, {'DEL', key},
}
for _, step in ipairs(steps) do
  local reply = redis.pcall(unpack(step))
  if type(reply) == 'table' and reply['err'] then
    redis.pcall('DEL', key)
    return {'denied', step[1], reply['err']}
  end
end
return {'ok'}
