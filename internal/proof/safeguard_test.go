package proof

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// mutants are the safeguards of the write path, each taken out. docs/proof.md has the table.
var mutants = []mutant{
	{
		name: "a row with our write id means applied",
		old:  "if row and sub(row, 1, 8) == argv[a + 1] then return 2 end", catch: bySweep, runs: 5,
	},
	{
		name: "a repeat is refused where the row is newer than what was seen",
		old:  "if tonumber(string.match(row, '^%d+', 9)) > floor then return {'unknown'} end", new: "row = row", catch: byLostReplies, runs: 1000,
	},
	{
		name: "a repeat is refused where something was deleted since",
		old:  "dels > floor then", new: "false then", catch: byLostReplies, runs: 1000,
	},
	{
		name: "a repeat is refused where the server lost writes",
		old:  "if seq < floor then return {'unknown'} end", catch: byScene(sceneRollback), runs: 1,
	},
	{
		name: "a repeat says that it is one",
		hook: rewrite(func(ctx context.Context, args []any, seen int) redis.Cmder {
			args = slices.Clone(args)
			args[seen] = ""
			return resent{redis.NewCmd(ctx, args...)}
		}),
		catch: byHistory, runs: 1000,
	},
	{
		name: "the client never repeats by itself",
		hook: rewrite(func(ctx context.Context, args []any, _ int) redis.Cmder {
			return redis.NewCmd(ctx, args...)
		}),
		catch: byHistory, runs: 1000,
	},
	{
		name: "a condition on the write id",
		old:  "holds = row and sub(row, 1, 8) == sub(cond, 2)\n", new: "", catch: byHistory, runs: 100,
	},
	{
		name: "a condition on the bytes of a record without a row, and of one that is remembered",
		old:  "holds = holds and redis.sha1hex(value) == sub(cond, 2, 41)", catch: byScene(sceneLostRowMoves), runs: 1,
	},
	{
		name: "what has no row is only new if there is no key either",
		old:  "blank = blank and call('EXISTS', unpack(keys, from, min(from + 999, tail))) == 0", catch: byModel, runs: 30,
	},
	{
		name: "create wants no record",
		old:  "if alive then return {'exists'} end", catch: byModel, runs: 5,
	},
	{
		name: "replace wants a record",
		old:  "elseif mode == 'R' then\nif not alive then return {'missing'} end", new: "elseif mode == 'R' then", catch: byModel, runs: 5,
	},
	{
		name: "whether a record exists is asked of its key",
		old:  "alive = size > 0 or call('EXISTS', keys[k]) == 1", new: "alive = not not row", catch: byModel, runs: 5,
	},
	{
		name: "what is left of a record is collected only if it is gone",
		old:  "if alive then return {'alive'} end", catch: byModel, runs: 5,
	},
	{
		name: "the row names no entry that the plan leaves out",
		old:  "not covered(entries, assumed, argv[a + 2]) then", new: "false then", catch: byModel, runs: 5,
	},
	{
		name: "a record whose row is lost is planned from its bytes",
		old:  "elseif alive and not by_value then", new: "elseif false then", catch: byModel, runs: 20,
	},
	{
		name: "a unique value has one holder",
		old:  "if holder and holder ~= id then", new: "if false then", catch: byModel, runs: 5,
	},
	{
		name: "a claim made earlier in a batch counts",
		old:  "for _, e in ipairs(adds[id] or {}) do claimed[e] = id end", catch: byModel, runs: 30,
	},
	{
		name: "the type of each index key is asked first",
		old:  "if type(size) == 'table' then\namiss =", new: "if false then\namiss =", catch: byModel, runs: 10,
	},
	{
		name: "the type of a record's key is asked first",
		old:  "if type(size) == 'table' then return typed(k, 'string', size) end", new: "if type(size) == 'table' then size = 1 end", catch: byScene(sceneForeignRecord), runs: 1,
	},
	{
		name: "the first write is one that a full server refuses",
		old:  "decimal(call('HINCRBY', meta, 'seq', 1))", new: "decimal(call('HGET', meta, 'seq') + 1)", catch: byScene(sceneFullServer), runs: 1,
	},
	{
		name: "a call that only deletes begins with a write that a full server allows",
		old:  "if puts == 0 then call('HDEL', meta, '') end", catch: byScene(sceneFullServer), runs: 1,
	},
	{
		name:  "entries that have not changed are written again",
		old:   "if not refused and not over and not trimmed and code ~= 'l' and code ~= 'k' then",
		new:   "if n == 1 and rows[1] and find(rows[1], '\\n' .. argv[records + stride + 2], 9, true) then amiss = nil elseif not refused and not over and not trimmed and code ~= 'l' and code ~= 'k' then",
		catch: byModel, runs: 20,
	},
	{
		name: "an update keeps the lifetime",
		old:  "call('SET', key, argv[a + 3], 'KEEPTTL')", new: "call('SET', key, argv[a + 3])", catch: byScene(sceneLifetime), runs: 1,
	},
	{
		name: "what is trimmed raises the floor",
		old:  "each('HSET', keys[4], moved, 1, #moved)", catch: byModel, runs: 5,
	},
	{
		name: "the floor never falls by itself",
		old:  "floor.counter, floor.moved = counter, true",
		new:  "while #floor > 0 do table.remove(floor) end floor.more, floor.counter, floor.moved = false, counter, true", catch: byTrims, runs: 200,
	},
	{
		name: "a generation that is too old is refused",
		old:  "if generation + 0 < min + 0 then return {'schema', min} end", catch: byScene(sceneOldGeneration), runs: 1,
	},
	{
		name: "a partition that began anew is another one",
		old:  "if epoch ~= known or generation + 0 > newest + 0 then return {'meta'} end",
		new:  "if generation + 0 > newest + 0 then return {'meta'} end", catch: byScene(sceneBeganAnew), runs: 1,
	},
}

// resent is a command that only its caller repeats.
type resent struct{ *redis.Cmd }

func (resent) NoRetry() bool { return true }
