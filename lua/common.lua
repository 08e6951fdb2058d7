-- common: what every script begins with.

-- The type of the key at a KEYS position, 'none' if there is no key.
local function typeof(position)
  return redis.call('TYPE', KEYS[position])['ok']
end

-- The refusal for a key of a foreign type; err, as it came, where the type is as wanted.
local function typed(position, want, err)
  local t = typeof(position)
  if t ~= want and t ~= 'none' then return {'type', position, t} end
  return err
end

-- The refusal of a query whose index is not ready in this partition (meta is KEYS 1), else nil.
local function unready(field)
  local head = redis.pcall('HMGET', KEYS[1], 'schema', field)
  if head['err'] then return typed(1, 'hash', head) end
  if not head[1] then return {'meta'} end
  if head[2] ~= 'ready' then return {'state', head[2] or ''} end
  return nil
end

-- The server's clock in milliseconds.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- A score as a number: infinities have a spelling of their own, and not every Lua reads an exponent without a point.
local function number(score)
  if score == 'inf' or score == '+inf' then return math.huge end
  if score == '-inf' then return -math.huge end
  return tonumber(score) or tonumber((string.gsub(score, 'e', '.0e', 1)))
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
