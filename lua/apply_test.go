package lua

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

var (
	newUser = []string{"status.1:new"}
	oldUser = []string{"status.1:old"}
	ann     = []string{"email.1:ann"}
)

func TestAWriteMovesRecordRowAndEntriesTogether(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", writeID: "write001", in: newUser})
		require.Equal(t, "write0011\nsstatus.1:new", w.row("a"))
		require.Equal(t, []string{"a"}, w.members(statusOf+"new:v1"))
		w.written(change{id: "a", writeID: "write002", had: newUser, in: oldUser})
		require.Equal(t, "write0022\nsstatus.1:old", w.row("a"))
		require.Empty(t, w.members(statusOf+"new:v1"))
		require.Equal(t, []string{"a"}, w.members(statusOf+"old:v1"))
		w.written(change{id: "b"})
		require.Equal(t, "w00000013", w.row("b"), "no entries, no line")
		w.written(change{id: "a", mode: Delete, had: oldUser}, change{id: "b", mode: Delete})
		require.Equal(t, []string{meta}, w.s.Keys(t))
		require.Equal(t, int64(4), w.seq())
	})
}

func TestAnEqualWriteHealsAnEntryThatWasLost(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", in: newUser})
		require.NoError(t, w.rdb.SRem(w.ctx, statusOf+"new:v1", "a").Err())
		w.written(change{id: "a", had: newUser, in: newUser})
	})
}

func TestTheSameCallTwiceIsAppliedOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		for _, mode := range []Mode{Put, Create} {
			ch := change{id: string(mode), writeID: "write001", mode: mode, in: newUser}
			w.written(ch)
			w.refused(ch, Status{Code: Repeated})
		}
	})
}

func TestEntriesOtherThanAssumedComeBackInsteadOfBeingLeftBehind(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", writeID: "write001", in: newUser})
		want := Status{Code: Replan, Row: "write0011\nsstatus.1:new"}
		w.refused(change{id: "a", in: oldUser}, want)
		w.refused(change{id: "a", had: []string{"status.1:other"}, in: oldUser}, want)
		w.refused(change{id: "a", mode: Replace, in: oldUser}, want)
		w.refused(change{id: "a", mode: Delete}, want)
		require.NoError(t, w.rdb.Del(w.ctx, record("a")).Err())
		w.refused(change{id: "a", mode: Create, in: oldUser}, want)
		w.refused(change{id: "a", mode: Collect, had: oldUser}, want)
		w.written(change{id: "a", had: newUser, in: oldUser})
	})
}

func TestARecordWhoseRowIsLostComesBackForItsEntries(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", in: newUser}, change{id: "b", in: newUser})
		value := w.rdb.Get(w.ctx, record("a")).Val()
		require.NoError(t, w.rdb.HDel(w.ctx, manifest, "a", "b").Err())
		w.refused(change{id: "a", in: oldUser}, Status{Code: Adopt, Value: value})
		w.refused(change{id: "a", had: newUser, mode: Delete}, Status{Code: Adopt, Value: value})
		w.refused(change{id: "a", had: newUser, in: oldUser, condition: IfValue(digest("other"))}, Status{Code: Changed, Value: value})
		w.written(change{id: "a", had: newUser, in: oldUser, condition: IfValue(digest(value))})
		value = w.rdb.Get(w.ctx, record("a")).Val()
		w.refused(change{id: "a", had: oldUser, in: newUser, condition: IfValue(digest(value))},
			Status{Code: Changed, Value: value, Row: w.row("a")}) // the row is back and knows better
		w.written(change{id: "b", mode: Delete, had: newUser, condition: IfValue(digest(w.rdb.Get(w.ctx, record("b")).Val()))})
	})
}

func digest(s string) string {
	sum := sha1.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

func TestAModeThatDoesNotFitWhatIsThereChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		for _, mode := range []Mode{Replace, Delete} {
			w.refused(change{id: "a", mode: mode}, Status{Code: Missing})
		}
		w.refused(change{id: "a", condition: IfWriteID("write001")}, Status{Code: Missing})
		w.refused(change{id: "a", condition: IfValue(digest(""))}, Status{Code: Missing})
		w.refused(change{id: "a", mode: Delete, condition: IfWriteID("write001")}, Status{Code: Missing})
		w.written(change{id: "a", writeID: "write001", in: newUser})
		w.refused(change{id: "a", mode: Create, had: newUser, in: newUser}, Status{Code: Exists})
		w.refused(change{id: "a", mode: Collect, had: newUser}, Status{Code: Alive})
	})
}

func TestAConditionThatNoLongerHoldsChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", writeID: "write001", in: newUser})
		changed := Status{Code: Changed, Value: w.rdb.Get(w.ctx, record("a")).Val(), Row: w.row("a")}
		for _, mode := range []Mode{Put, Replace, Delete} {
			w.refused(change{id: "a", mode: mode, had: newUser, condition: IfWriteID("write000")}, changed)
			w.refused(change{id: "a", mode: mode, had: newUser, condition: IfBytes(digest("other"), "write001")}, changed)
		}
		w.written(change{id: "a", writeID: "write002", had: newUser, in: oldUser, condition: IfWriteID("write001")})
		changed = Status{Code: Changed, Value: w.rdb.Get(w.ctx, record("a")).Val(), Row: w.row("a")}
		w.refused(change{id: "a", had: newUser, in: newUser, condition: IfWriteID("write001")}, changed)
		w.refused(change{id: "a", had: newUser, in: newUser, condition: IfBytes(digest(changed.Value), "write001")}, changed)
		w.written(change{id: "a", writeID: "write003", had: oldUser, in: oldUser, condition: IfBytes(digest(changed.Value), "write002")})
		w.written(change{id: "a", mode: Delete, had: oldUser, condition: IfWriteID("write003")})
		w.refused(change{id: "a", condition: IfWriteID("write002")}, Status{Code: Missing})
	})
}

func TestAUniqueValueInOtherHandsNamesItsHolder(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", writeID: "write001", in: ann})
		row := "write0011\nsemail.1:ann"
		taken := Status{Code: Taken, Key: emailOf + "ann:v1", Holder: "a", Row: row}
		w.refused(change{id: "b", in: ann}, taken)
		w.refused(change{id: "b", mode: Create, in: append(newUser, ann...)}, taken)
		w.written(change{id: "a", had: ann, in: ann}) // its own value is no conflict

		require.NoError(t, w.rdb.HDel(w.ctx, manifest, "a").Err())
		taken.Row = ""
		w.refused(change{id: "b", in: ann}, taken)
		value := w.rdb.Get(w.ctx, record("a")).Val()
		w.written(change{id: "a", had: ann, in: ann, condition: IfValue(digest(value))})
	})
}

func TestTwoClaimsOfOneValueInOneCallHaveOneWinner(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		st := w.apply(change{id: "a", in: ann}, change{id: "b", in: ann}, change{id: "c", in: newUser})
		require.Equal(t, Status{Code: Written}, st[0])
		require.Equal(t, Status{Code: Taken, Key: emailOf + "ann:v1", Holder: "a"}, st[1], "and the winner has no row yet")
		require.Equal(t, Status{Code: Written}, st[2], "the refusal of one does not stop the others")

		st = w.apply(change{id: "a", had: ann}, change{id: "b", in: ann})
		require.Equal(t, Written, st[0].Code)
		require.Equal(t, Taken, st[1].Code, "a value released in a call cannot be claimed in it")
		w.written(change{id: "b", in: ann})
	})
}

func TestARefusedClaimDoesNotBlockTheValue(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", in: []string{"email.1:bob"}})
		st := w.apply(change{id: "b", in: []string{"email.1:ann", "email.1:bob"}}, change{id: "c", in: ann})
		require.Equal(t, Taken, st[0].Code)
		require.Equal(t, Status{Code: Written}, st[1], "a record that is not written claims nothing")
	})
}

func TestAValueWhoseHolderVanishedIsFreedInTheCallThatClaimsIt(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", in: ann})
		require.NoError(t, w.rdb.Del(w.ctx, record("a")).Err())
		row := w.row("a")
		w.refused(change{id: "b", in: ann}, Status{Code: Taken, Key: emailOf + "ann:v1", Holder: "a", Row: row})
		st := w.apply(change{id: "b", in: ann}, change{id: "a", mode: Collect, had: ann})
		require.Equal(t, Taken, st[0].Code, "the collection has to come first")
		require.Equal(t, Written, st[1].Code)
		w.written(change{id: "b", in: ann})
		require.NoError(t, w.rdb.Del(w.ctx, record("b")).Err())
		w.written(change{id: "b", mode: Collect, had: ann}, change{id: "c", in: ann})
		require.Equal(t, []string{"c"}, w.members(emailOf+"ann:v1"))
	})
}

func TestAValueWhoseHolderVanishedWithItsRowIsFreed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		require.NoError(t, w.rdb.SAdd(w.ctx, emailOf+"ann:v1", "ghost").Err())
		w.refused(change{id: "b", in: ann}, Status{Code: Taken, Key: emailOf + "ann:v1", Holder: "ghost"})
		w.written(change{id: "ghost", mode: Collect, had: ann}, change{id: "b", in: ann})
	})
}

func TestARowThatNamesFewerEntriesThanThePlanNeedsNoSecondTrip(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", in: newUser})
		w.written(change{id: "a", had: oldUser, in: []string{"status.1:new", "status.1:third"}})
		w.written(change{id: "a", had: []string{"status.1:new", "status.1:third", "status.1:x"}, in: oldUser})
		w.refused(change{id: "a", had: newUser, in: ann}, Status{Code: Replan, Row: w.row("a")})
	})
}

func TestALivingHolderIsNotCollected(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", in: ann})
		before := redistest.Snapshot(t, w.rdb)
		st := w.apply(change{id: "a", mode: Collect, had: ann}, change{id: "b", in: ann})
		require.Equal(t, Alive, st[0].Code)
		require.Equal(t, Taken, st[1].Code)
		require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, w.rdb)))
	})
}

func TestAForeignValueAtAKeyIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		plant := func(key string) {
			require.NoError(t, w.rdb.Del(w.ctx, key).Err())
			require.NoError(t, w.rdb.RPush(w.ctx, key, "x").Err())
		}
		plant(record("a"))
		w.refused(change{id: "a", in: newUser}, Status{Code: WrongType, Key: record("a"), Found: "list"})
		w.refused(change{id: "a", mode: Delete}, Status{Code: WrongType, Key: record("a"), Found: "list"})
		for _, body := range []string{"status.1:new", "email.1:ann"} {
			key := prefix + "~" + body + ":v1"
			plant(key)
			w.refused(change{id: "b", in: []string{"status.1:fine", body}}, Status{Code: WrongType, Key: key, Found: "list"})
		}
		st := w.apply(change{id: "b", in: newUser}, change{id: "c", in: oldUser})
		require.Equal(t, WrongType, st[0].Code)
		require.Equal(t, Written, st[1].Code, "the others are written")
	})
}

func TestAForeignValueAtAHousekeepingKeyEndsTheCall(t *testing.T) {
	for _, key := range []string{meta, manifest, expiry} {
		each(t, func(t *testing.T, w *world) {
			w.written(change{id: "c", in: oldUser})
			require.NoError(t, w.rdb.Del(w.ctx, key).Err())
			require.NoError(t, w.rdb.RPush(w.ctx, key, "x").Err())
			before := redistest.Snapshot(t, w.rdb)
			for _, ch := range []change{{id: "d", in: oldUser}, {id: "d", lifetime: "1000"}, {id: "c", mode: Delete, had: oldUser}} {
				_, err := w.r.Apply(w.ctx, w.call(ch))
				require.ErrorIs(t, err, ErrKeyType)
				var typed *KeyTypeError
				require.ErrorAs(t, err, &typed)
				require.Equal(t, KeyTypeError{Key: key, Found: "list"}, *typed)
			}
			require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, w.rdb)))
		})
	}
}

func TestAPartitionThatDoesNotKnowTheCallerIsNotWritten(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		w := newWorld(t, s)
		_, err := w.r.Apply(w.ctx, w.call(change{id: "a", in: newUser}))
		require.ErrorIs(t, err, ErrNotEntered, "no meta")
		require.Empty(t, s.Keys(t))

		require.NoError(t, w.enter(2, Ready, nil))
		before := redistest.Snapshot(t, w.rdb)
		c := w.call(change{id: "a", in: newUser})
		c.Generation = 3
		_, err = w.r.Apply(w.ctx, c)
		require.ErrorIs(t, err, ErrNotEntered, "newer than what has entered")
		_, err = w.r.Apply(w.ctx, w.call(change{id: "a", in: newUser}))
		require.ErrorIs(t, err, ErrSchema)
		var schema *SchemaError
		require.ErrorAs(t, err, &schema)
		require.Equal(t, SchemaError{Generation: 1, Min: 2}, *schema)
		require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, w.rdb)))

		require.NoError(t, w.rdb.HSet(w.ctx, meta, "schema", "1 2 e").Err())
		w.written(change{id: "a", in: newUser}) // older, but not older than the oldest allowed
		w.verified()
	})
}

func TestALifetimeIsSetKeptAndTakenAwayWithItsNote(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		left := func() time.Duration { return w.rdb.PTTL(w.ctx, record("a")).Val() }
		w.written(change{id: "a", in: newUser, lifetime: "3600000"})
		require.InDelta(t, time.Hour, left(), float64(10*time.Second))
		due, err := w.rdb.ZScore(w.ctx, expiry, "a").Result()
		require.NoError(t, err)
		require.InDelta(t, float64(time.Now().Add(time.Hour).UnixMilli()), due, 10_000)
		w.written(change{id: "a", had: newUser, in: newUser, lifetime: Keep, note: "kept"})
		require.InDelta(t, time.Hour, left(), float64(10*time.Second))
		require.Equal(t, due, w.rdb.ZScore(w.ctx, expiry, "a").Val())
		w.written(change{id: "a", had: newUser, in: newUser, lifetime: Forever})
		require.Negative(t, left())
		require.NotContains(t, w.s.Keys(t), expiry)
		w.written(change{id: "a", had: newUser, in: newUser, lifetime: "60000"})
		w.written(change{id: "a", mode: Delete, had: newUser})
		require.Equal(t, []string{meta}, w.s.Keys(t))
	})
}

func TestALargeBatchIsNotTooLargeForTheScript(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		var many, gone []change
		for i := range 2500 {
			id := fmt.Sprint("id", i)
			many = append(many, change{id: id, in: newUser, lifetime: "3600000"})
			if i%2 == 0 {
				gone = append(gone, change{id: id, mode: Delete, had: newUser})
			} else {
				gone = append(gone, change{id: id, had: newUser, in: oldUser})
			}
		}
		w.written(many...)
		w.written(gone...)
		require.Len(t, w.members(statusOf+"old:v1"), 1250)
		out := w.apply(many[1])
		require.Equal(t, Replan, out[0].Code)
		for i, st := range w.apply(many[:1200]...) {
			if i%2 == 0 {
				require.Equal(t, Written, st.Code)
			} else {
				require.Equal(t, Replan, st.Code)
				require.Contains(t, st.Row, "sstatus.1:old", "each status belongs to its record")
			}
		}
	})
}
