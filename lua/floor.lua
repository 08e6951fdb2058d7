-- floor: what a ranked key has trimmed, for the scripts that keep and read it.
--
-- A floor is a field of the floor hash:
--   the write counter of the last trim, '+' where its last pair stands for others that are no better too, then for each
--   pair, the best first, ' score size member'
-- Whatever was trimmed and has not been written since is one of the pairs, or no better than the last of a floor with '+'.

-- A floor has this many pairs at most. With one alone, a record that is trimmed and then gets a worse score leaves a mark
-- that is too high; with a few, its pair goes and the next best stands.
local most_listed = 4

-- A floor from its text, not read before it is needed.
local function new_floor(text) return {text = text} end

-- Reads the pairs: score and member in turn. A text that somebody else has damaged has those that can be read.
local function open_floor(floor)
  if floor.open then return end
  floor.open = true
  local _, more, at = string.match(floor.text, '^(%d+)(%+?)()')
  while at do
    local score, size, from = string.match(floor.text, '^ (%S+) (%d+) ()', at)
    if not score or not number(score) or from + size - 1 > #floor.text then break end
    at = from + size
    floor[#floor + 1] = score
    floor[#floor + 1] = string.sub(floor.text, from, at - 1)
  end
  floor.more = more == '+' and #floor > 0
end

-- The text of a floor after a trim, or after a change that kept the counter of the last one; '' if no pair is left.
local function format_floor(floor)
  if #floor == 0 then return '' end
  local parts = {floor.counter or string.match(floor.text, '^%d*'), floor.more and '+' or ''}
  for i = 1, #floor, 2 do
    parts[#parts + 1] = ' ' .. floor[i] .. ' ' .. #floor[i + 1] .. ' '
    parts[#parts + 1] = floor[i + 1]
  end
  return table.concat(parts)
end

-- Takes a member off that is written anew: it is not outside any more. The last pair stays where it stands for others.
local function unlist(floor, member)
  if not string.find(floor.text, member, 1, true) then return end
  open_floor(floor)
  for i = #floor - (floor.more and 2 or 0), 2, -2 do
    if floor[i] == member then
      table.remove(floor, i)
      table.remove(floor, i - 1)
      floor.moved = true
    end
  end
end

-- Whether (score, member) lies nearer to the kept end than another pair.
local function beats(score, member, other_score, other_member, top)
  local x, y = number(score), number(other_score)
  if x == y then return member ~= other_member and before(other_member, member) == top end
  return (x > y) == top
end

-- Notes the members of a ranked key that stand at the ranks [from, to] and are about to go. top says that the highest are
-- kept.
local function list_trimmed(floor, key, from, to, top, counter)
  open_floor(floor)
  floor.counter, floor.moved = counter, true
  local all = to - from + 1
  if top then from = math.max(from, to - most_listed + 1) else to = math.min(to, from + most_listed - 1) end
  local going = redis.call('ZRANGE', key, from, to, 'WITHSCORES')
  local first, last, step = 1, #going - 1, 2
  if top then first, last, step = #going - 1, 1, -2 end
  for i = first, last, step do
    local member, score = going[i], going[i + 1]
    local at = #floor + 1
    while at > 1 and beats(score, member, floor[at - 2], floor[at - 1], top) do at = at - 2 end
    local listed = at > 1 and floor[at - 1] == member and number(floor[at - 2]) == number(score)
    if not listed and (at <= #floor or not floor.more) then
      table.insert(floor, at, member)
      table.insert(floor, at, score)
      if #floor > 2 * most_listed then
        table.remove(floor)
        table.remove(floor)
        floor.more = true
      end
    end
  end
  if all > #going / 2 then floor.more = true end
end
