-- Purpose: runs a script with a `redis` of its own that refuses what a strict
-- server would refuse: a key that is not in KEYS, a command whose keys are not
-- known here, and a call of more than 1000 arguments.
--
-- The refusal is raised as an error, also from redis.pcall, and raised again at
-- the end if the script swallowed it.
--
-- The text is sent as one line in front of the script, so that the script's
-- line numbers stay what they are. Hence comments only on lines of their own,
-- and no line whose meaning depends on where it ends.
local redis, checked = (function(redis)
  local shape = {}
  local function class(kind, names)
    for name in string.gmatch(names, '%S+') do shape[name] = kind end
  end
  class('none', 'TIME PING ECHO')
  class('all', 'DEL UNLINK EXISTS MGET TOUCH')
  class('pairs', 'MSET')
  class('first', 'GET SET SETNX SETEX PSETEX GETSET GETDEL GETEX APPEND STRLEN SETRANGE GETRANGE')
  class('first', 'INCR INCRBY INCRBYFLOAT DECR DECRBY TYPE DUMP')
  class('first', 'TTL PTTL EXPIRE PEXPIRE EXPIREAT PEXPIREAT EXPIRETIME PEXPIRETIME PERSIST')
  class('first', 'SADD SREM SCARD SISMEMBER SMISMEMBER SMEMBERS SSCAN SPOP SRANDMEMBER')
  class('first', 'ZADD ZINCRBY ZREM ZCARD ZSCORE ZMSCORE ZCOUNT ZLEXCOUNT ZRANK ZREVRANK ZSCAN')
  class('first', 'ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZRANGEBYLEX ZREVRANGEBYLEX')
  class('first', 'ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREMRANGEBYLEX ZPOPMIN ZPOPMAX ZRANDMEMBER')
  class('first', 'HSET HSETNX HGET HMGET HGETALL HKEYS HVALS HLEN HSTRLEN HEXISTS HDEL HSCAN')
  class('first', 'HINCRBY HINCRBYFLOAT HRANDFIELD')
  class('first', 'LPUSH RPUSH LPOP RPOP LLEN LRANGE LINDEX LTRIM LREM LSET')

  local declared = {}
  for i = 1, #KEYS do declared[KEYS[i]] = true end

  local refused

  -- Levels: refuse, check, the shadowed call, the line of the script.
  local function refuse(text)
    refused = refused or ('prelude: ' .. text)
    error('prelude: ' .. text, 4)
  end

  -- A percent sign is escaped too: miniredis takes the text of a raised error
  -- for a format.
  local function quoted(key)
    return '"' .. string.gsub(key, '[^\32-\36\38-\126]', function(c)
      return string.format('\\%03d', string.byte(c))
    end) .. '"'
  end

  local function check(...)
    local n = select('#', ...)
    if n == 0 then return end
    if n > 1002 then
      refuse(tostring((...)) .. ' with ' .. (n - 1) .. ' arguments, at most a key and 1000 are allowed')
    end
    local args = {...}
    local name = string.upper(tostring(args[1]))
    local kind = shape[name]
    if not kind then
      refuse(quoted(name) .. ' is not classified, add it to the prelude with the place of its keys')
    end
    local last, step = 1, 1
    if kind == 'first' then last = 2 elseif kind ~= 'none' then last = n end
    if kind == 'pairs' then step = 2 end
    for i = 2, math.min(last, n), step do
      local key = tostring(args[i])
      if not declared[key] then refuse(name .. ' of ' .. quoted(key) .. ', which is not in KEYS') end
    end
  end

  local call, pcall = redis.call, redis.pcall
  local shadow = setmetatable({
    call = function(...) check(...) return call(...) end,
    pcall = function(...) check(...) return pcall(...) end
  }, {__index = redis})

  return shadow, function(main)
    local reply = main()
    if refused then error(refused, 0) end
    return reply
  end
end)(redis)
