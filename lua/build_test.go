package lua

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

const floorKey = prefix + "~~floor:v1"

func TestABuildIsReadyOnlyIfNobodyTookOverAndNothingWasLost(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		require.NoError(t, w.rdb.HSet(w.ctx, meta, "index:status.1", "building", "index:email.1", "building").Err())
		before := w.state("schema")
		require.NoError(t, w.r.Fence(w.ctx, meta, 1, "one"))
		require.Equal(t, before, w.state("schema"), "min is the builder's, the rest stays")
		ready := func(nonce string, built int64) error {
			return w.r.Ready(w.ctx, meta, 1, nonce, built, []string{"index:status.1"})
		}
		require.ErrorIs(t, ready("one", 1), ErrLost)
		require.ErrorIs(t, ready("two", 0), ErrFenced)

		require.NoError(t, w.r.Fence(w.ctx, meta, 1, "two"))
		require.ErrorIs(t, ready("one", 0), ErrFenced, "the later builder has taken over")
		require.Equal(t, "building", w.state("index:status.1"))
		require.NoError(t, ready("two", 0))
		require.Equal(t, []string{"ready", "building"}, []string{w.state("index:status.1"), w.state("index:email.1")})
		require.ErrorIs(t, ready("two", 0), ErrFenced, "a build ends once")
	})
}

func TestAFixUnderAnotherFenceIsRefused(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		require.NoError(t, w.r.Fence(w.ctx, meta, 1, "mine"))
		call := w.call(change{id: "a", in: []string{"status.1:new"}})
		call.Fence = "other"
		_, err := w.r.Apply(w.ctx, call)
		require.ErrorIs(t, err, ErrFenced)
		require.Zero(t, w.rdb.Exists(w.ctx, record("a")).Val())
		call.Fence = "mine"
		_, err = w.r.Apply(w.ctx, call)
		require.NoError(t, err)
		require.Equal(t, "1", w.state("built"))
	})
}

func TestABuilderOlderThanTheNewestDeclarationIsRefused(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, err := w.r.Enter(w.ctx, meta, manifest, 2, Ready, "e", []string{"index:other.1"})
		require.NoError(t, err)
		var schema *SchemaError
		require.ErrorAs(t, w.r.Fence(w.ctx, meta, 1, "one"), &schema)
		require.Equal(t, SchemaError{Generation: 1, Min: 2}, *schema)
		require.ErrorIs(t, w.r.Fence(w.ctx, meta, 3, "one"), ErrNotEntered)
		require.NoError(t, w.r.Fence(w.ctx, meta, 2, "one"))
		require.ErrorAs(t, w.r.Ready(w.ctx, meta, 1, "one", 0, []string{"index:status.1"}), &schema)
		require.Equal(t, "dropping", w.state("index:status.1"))
	})
}

func TestAFloorIsLoweredOnlyFromWhatWasRead(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		floor := ParseFloor("7+ 5 3 a b 4 1 e")
		require.Equal(t, Floor{Raw: "7+ 5 3 a b 4 1 e", Best: Pair{"a b", "5"}}, floor)
		require.NoError(t, w.rdb.HSet(w.ctx, floorKey, "recent.1", floor.Raw).Err())
		lower := floor.Lowered([]Pair{{"c d", "4"}, {"e", "3"}}, false)
		require.ErrorIs(t, w.r.Refloor(w.ctx, floorKey, "recent.1", "6", lower), ErrMoved)
		require.ErrorIs(t, w.r.Refloor(w.ctx, floorKey, "recent.1", "70", lower), ErrMoved)
		require.ErrorIs(t, w.r.Refloor(w.ctx, floorKey, "other.1", "7", ""), ErrMoved)
		require.NoError(t, w.r.Refloor(w.ctx, floorKey, "recent.1", floor.Counter(), lower))
		mark := ParseFloor(w.rdb.HGet(w.ctx, floorKey, "recent.1").Val())
		require.Equal(t, Floor{Raw: "7 4 3 c d 3 1 e", Best: Pair{"c d", "4"}}, mark)
		require.NoError(t, w.r.Refloor(w.ctx, floorKey, "recent.1", mark.Counter(), floor.Lowered([]Pair{{"x", "2"}}, true)))
		require.Equal(t, "7+ 2 1 x", w.rdb.HGet(w.ctx, floorKey, "recent.1").Val())

		require.NoError(t, w.r.Refloor(w.ctx, floorKey, "recent.1", mark.Counter(), ""))
		require.Zero(t, w.rdb.Exists(w.ctx, floorKey).Val())
	})
}

func TestALookTellsRecordRowAndMembershipsOfOneInstant(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.written(change{id: "a", in: []string{"status.1:new"}})
		zset, list := prefix+"~recent.1:v1", prefix+"~status.1:odd:v1"
		require.NoError(t, w.rdb.Do(w.ctx, "zadd", zset, "-inf", "a", "0.1", "b").Err())
		require.NoError(t, w.rdb.RPush(w.ctx, list, "x").Err())
		require.NoError(t, w.rdb.HSet(w.ctx, floorKey, "recent.1", "7 5 1 z").Err())
		require.NoError(t, w.rdb.Do(w.ctx, "zadd", expiry, "1", "b").Err())
		before := redistest.Snapshot(t, w.rdb)
		status := prefix + "~status.1:new:v1"
		out, now, err := w.r.Inspect(w.ctx, InspectCall{Manifest: manifest, Expiry: expiry, Floor: floorKey, Records: []InspectRecord{
			{Key: record("a"), ID: "a", Questions: []Question{
				{Key: status, Member: "a"}, {Key: zset, Scored: true, Member: "a", Floor: "recent.1"}, {Key: list, Member: "a"},
			}},
			{Key: record("b"), ID: "b", Questions: []Question{{Key: status, Member: "b"}, {Key: zset, Scored: true, Member: "b"}}},
			{Key: list, ID: "c", Questions: []Question{{Key: status, Scored: true, Member: "c"}}},
		}})
		require.NoError(t, err)
		require.Equal(t, w.rdb.Time(w.ctx).Val().Unix()/10, now.Unix()/10)
		floor := ParseFloor("7 5 1 z")
		require.Equal(t, "string", out[0].Type)
		require.Contains(t, out[0].Row, "sstatus.1:new")
		require.JSONEq(t, `{"ID":"a","In":["status.1:new"]}`, out[0].Value)
		require.Equal(t, []Membership{{Member: true}, {Member: true, Score: "-inf", Floor: floor}, {Foreign: "list"}}, out[0].Answers)
		require.Equal(t, "none", out[1].Type)
		require.False(t, out[1].HasRow)
		require.True(t, out[1].Due)
		require.Equal(t, Membership{}, out[1].Answers[0])
		require.True(t, out[1].Answers[1].Member)
		require.Equal(t, "list", out[2].Type)
		require.Equal(t, []Membership{{Foreign: "set"}}, out[2].Answers)
		require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, w.rdb)))

		for _, k := range []string{manifest, expiry, floorKey} {
			w.s.Flush(t)
			require.NoError(t, w.rdb.Set(w.ctx, k, "x", 0).Err())
			_, _, err := w.r.Inspect(w.ctx, InspectCall{Manifest: manifest, Expiry: expiry, Floor: floorKey, Records: []InspectRecord{
				{Key: record("a"), ID: "a", Questions: []Question{{Key: zset, Scored: true, Member: "a", Floor: "recent.1"}}},
			}})
			var typed *KeyTypeError
			require.ErrorAs(t, err, &typed)
			require.Equal(t, KeyTypeError{Key: k, Found: "string"}, *typed)
		}
	})
}
