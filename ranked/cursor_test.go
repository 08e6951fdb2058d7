package ranked_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/ranked"
)

// oddIDs order otherwise by bytes than by letters or by a locale.
var oddIDs = []string{"\x00", "\x00\x00", "\x01", "A", "B", "Z", "_", "a", "a\x00", "a\xff", "aa", "b", "é", "\x80", "\xff", "\xff\xff"}

func TestEqualScoresAreOrderedByTheBytesOfTheIDAcrossPages(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		newest, exact := ranked.New("rank", score[int64]), ranked.Exact("exact", score[int64])
		st := open(t, s, ints, newest, exact)
		for i := range oddIDs {
			id := oddIDs[(i*5+3)%len(oddIDs)]
			st.put(entry[int64]{ID: id, Score: -3}, entry[int64]{ID: id + "+", Score: 4})
		}
		var low, high []string
		for _, id := range oddIDs {
			low, high = append(low, id), append(high, id+"+")
		}
		slices.Sort(low)
		slices.Sort(high)
		want := slices.Concat(low, high)
		down := slices.Clone(want)
		slices.Reverse(down)
		for size := range 18 {
			for _, by := range []*ranked.Index[entry[int64], int64]{newest, exact} {
				require.Equal(t, want, st.pages(by.Bottom(size+1)), "%s upwards by %d", by.Name(), size+1)
				require.Equal(t, down, st.pages(by.Top(size+1)), "%s downwards by %d", by.Name(), size+1)
			}
		}
	})
}

func TestACursorGoesOnWhereItsRecordWasThoughItIsGoneOrMoved(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, by := range []*ranked.Index[entry[int64], int64]{
			ranked.New("rank", score[int64]), ranked.Exact("exact", score[int64]),
		} {
			for name, change := range map[string]func(store[int64]){
				"deleted":                func(st store[int64]) { require.NoError(t, st.Delete(t.Context(), "m")) },
				"moved up":               func(st store[int64]) { st.put(entry[int64]{ID: "m", Score: 100}) },
				"moved down":             func(st store[int64]) { st.put(entry[int64]{ID: "m", Score: -100}) },
				"moved to the next tie":  func(st store[int64]) { st.put(entry[int64]{ID: "m", Score: 6}) },
				"moved to the tie below": func(st store[int64]) { st.put(entry[int64]{ID: "m", Score: 4}) },
				"removed by hand": func(st store[int64]) {
					require.NoError(t, st.rdb.Del(t.Context(), at+"m:v1").Err())
				},
			} {
				s.Flush(t)
				st := open(t, s, ints, by)
				for _, n := range []int64{4, 5, 6} {
					st.put(entry[int64]{ID: fmt.Sprintf("a%d", n), Score: n}, entry[int64]{ID: fmt.Sprintf("z%d", n), Score: n})
				}
				st.put(entry[int64]{ID: "m", Score: 5})
				up, down := st.page(by.Bottom(4)), st.page(by.Top(4))
				require.Equal(t, []string{"a4", "z4", "a5", "m"}, idsOf(up))
				require.Equal(t, []string{"z6", "a6", "z5", "m"}, idsOf(down))
				change(st)
				// With another score it is another place in the order, which may follow.
				rest, ahead := []string{"z5", "a6", "z6"}, []string{"a5", "z4", "a4"}
				switch name {
				case "moved up":
					rest = append(rest, "m")
				case "moved down":
					ahead = append(ahead, "m")
				case "moved to the next tie":
					rest = []string{"z5", "a6", "m", "z6"}
				case "moved to the tie below":
					ahead = []string{"a5", "z4", "m", "a4"}
				}
				require.Equal(t, rest, st.whole(by.Bottom(9).After(up.Next)), "%s, %s", by.Name(), name)
				require.Equal(t, ahead, st.whole(by.Top(9).After(down.Next)), "%s, %s", by.Name(), name)
			}
		}
	})
}

// A record whose score moved from just before the cursor to just behind the ties is the first of what follows.
func TestARecordThatMovedBeyondTheTiesOfACursorIsStillOnTheNextPage(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[int64])
		st := open(t, s, ints, by)
		st.put(entry[int64]{ID: "a", Score: 1}, entry[int64]{ID: "b", Score: 1}, entry[int64]{ID: "c", Score: 3})
		p := st.page(by.Bottom(2))
		require.Equal(t, []string{"a", "b"}, idsOf(p))
		st.put(entry[int64]{ID: "b", Score: 2})
		require.Equal(t, []string{"b", "c"}, st.whole(by.Bottom(2).After(p.Next)))
	})
}

func TestEveryRecordThatLivesThroughThePagingIsSeenExactlyOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by, exact := ranked.New("rank", score[int64]), ranked.Exact("exact", score[int64])
		st := open(t, s, ints, by, exact)
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		for round := range s.Size(24, 12) { // 12 are each case once
			size, ix, descending := 1+round%3, []*ranked.Index[entry[int64], int64]{by, exact}[round/3%2], round/6%2 == 0
			stays := map[string]int{}
			for i := range 24 {
				// Three scores: ties lie at most borders.
				st.put(entry[int64]{ID: fmt.Sprintf("s%02d", i), Score: int64(i % 3)}, entry[int64]{ID: fmt.Sprintf("x%02d", i), Score: int64(i % 3)})
				stays[fmt.Sprintf("s%02d", i)] = 0
			}
			o := ix.Bottom(size)
			if descending {
				o = ix.Top(size)
			}
			for pages := 0; ; pages++ {
				require.Less(t, pages, 200, "seed %d, round %d: the pages do not end", seed, round)
				p := st.page(o)
				for _, item := range p.Items {
					if _, ok := stays[item.ID]; ok {
						stays[item.ID]++
					}
				}
				if p.Next == "" {
					break
				}
				o = o.After(p.Next)
				switch id := fmt.Sprintf("x%02d", rng.IntN(30)); rng.IntN(3) {
				case 0:
					require.NoError(t, st.Delete(t.Context(), id))
				default:
					st.put(entry[int64]{ID: id, Score: int64(rng.IntN(3))})
				}
			}
			for id, seen := range stays {
				require.Equal(t, 1, seen, "seed %d, round %d: %s", seed, round, id)
			}
		}
	})
}

func TestACursorThatWasCutOrAlteredIsRefused(t *testing.T) {
	s := redistest.Mini(t)
	by := ranked.New("rank", score[int64])
	st := open(t, s, ints, by)
	for _, id := range []string{"a", "b", "c", "\xff\x00"} {
		st.put(entry[int64]{ID: id, Score: math.MinInt32})
	}
	cursor := string(st.page(by.Top(1)).Next)
	require.Regexp(t, `^[0-9A-Za-z_-]+$`, cursor, "text that a URL and a shell take")
	refused := func(c string) {
		t.Helper()
		_, err := st.Top(t.Context(), by.Top(1).After(index.Cursor(c)))
		require.ErrorIs(t, err, index.ErrCursor, "%q", c)
		about(t, err, "", "rank")
	}
	for i := range cursor {
		for b := range 256 {
			if byte(b) != cursor[i] {
				refused(cursor[:i] + string([]byte{byte(b)}) + cursor[i+1:])
			}
		}
		if i > 0 {
			refused(cursor[:i])
		}
		refused(cursor[i+1:] + "A")
		for _, more := range []string{"\n", "\r", " ", "=", "A"} {
			refused(cursor[:i] + more + cursor[i:])
		}
	}
	refused(cursor + "\n")
	refused(cursor + "=")
	refused(cursor + cursor)
	refused("0")
	refused(strings.Repeat("A", 64))
	for _, err := range []error{
		func() error { _, err := drain(st.Find(t.Context(), by.Top(1).After("x"))); return err }(),
		func() error { _, err := drain(st.IDs(t.Context(), by.Top(1).After("x"))); return err }(),
	} {
		require.ErrorIs(t, err, index.ErrCursor)
	}
}

func TestACursorOfAnotherQueryIsRefused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by, other := ranked.New("rank", score[int64]), ranked.New("other", score[int64])
		in := ranked.Within(group[int64], ranked.New("in", score[int64]))
		st := open(t, s, ints, by, other, in)
		for _, id := range []string{"a", "b", "c", "d"} {
			st.put(entry[int64]{ID: id, Group: map[bool]string{true: "x", false: "y"}[id < "c"], Score: 1})
		}
		second := index.Define("acme:arcade", "second", index.Options[entry[int64]]{
			ID: func(e entry[int64]) string { return e.ID }, Version: 1, Lifetime: index.Forever, Codec: codec(ints),
			Indexes: []index.Index[entry[int64]]{by},
		})
		twin, err := index.Open(t.Context(), st.rdb, second)
		require.NoError(t, err)

		cursor := st.page(by.Top(1)).Next
		grouped := st.page(in.Of("x").Top(1)).Next
		ranged := st.page(by.Top(1), by.AtLeast(1)).Next
		for name, ask := range map[string]func() error{
			"direction":     func() error { _, err := st.Top(t.Context(), by.Bottom(1).After(cursor)); return err },
			"index":         func() error { _, err := st.Top(t.Context(), other.Top(1).After(cursor)); return err },
			"group":         func() error { _, err := st.Top(t.Context(), in.Of("y").Top(1).After(grouped)); return err },
			"range":         func() error { _, err := st.Top(t.Context(), by.Top(1).After(cursor), by.AtLeast(1)); return err },
			"another range": func() error { _, err := st.Top(t.Context(), by.Top(1).After(ranged), by.Above(1)); return err },
			"no range":      func() error { _, err := st.Top(t.Context(), by.Top(1).After(ranged)); return err },
			"entity type":   func() error { _, err := twin.Top(t.Context(), by.Top(1).After(cursor)); return err },
		} {
			require.ErrorIs(t, ask(), index.ErrCursor, name)
		}
		require.Equal(t, []string{"c", "b", "a"}, st.whole(by.Top(3).After(cursor)), "another page size is the same query")
		require.Equal(t, []string{"a"}, st.whole(in.Of("x").Top(1).After(grouped)))
		require.Equal(t, []string{"c"}, st.whole(by.Top(1).After(ranged), by.AtLeast(1)))
	})
}

func TestAnOrderThatCannotBeAnsweredIsATypedError(t *testing.T) {
	s := redistest.Mini(t)
	by := ranked.New("rank", score[int64], ranked.Keep(3))
	in := ranked.Within(group[int64], ranked.New("in", score[int64], ranked.Keep(3)))
	member := membership.New("group", group[int64])
	stranger := ranked.New("rank", score[int64], ranked.Keep(3)) // the same name, but declared nowhere
	st := open(t, s, ints, by, in, member)
	st.put(entry[int64]{ID: "a", Group: "x", Score: 1})
	for name, c := range map[string]struct {
		order      index.Order[entry[int64]]
		conditions []index.Condition[entry[int64]]
		want       error
		index      string
	}{
		"no records":             {by.Top(0), nil, index.ErrInvalid, "rank"},
		"fewer than none":        {by.Bottom(-1), nil, index.ErrInvalid, "rank"},
		"more than are kept":     {by.Newest(4), nil, index.ErrInvalid, "rank"},
		"more in a group":        {in.Of("x").Oldest(4), nil, index.ErrInvalid, "in"},
		"no order":               {index.Order[entry[int64]]{}, nil, index.ErrInvalid, ""},
		"an undeclared index":    {stranger.Top(1), nil, index.ErrInvalid, "rank"},
		"a membership":           {by.Top(1), []index.Condition[entry[int64]]{member.Is("x")}, index.ErrUnsupported, "rank"},
		"a range of another":     {by.Top(1), []index.Condition[entry[int64]]{in.Of("x").AtLeast(1)}, index.ErrUnsupported, "rank"},
		"a range of other group": {in.Of("x").Top(1), []index.Condition[entry[int64]]{in.Of("y").AtLeast(1)}, index.ErrUnsupported, "in"},
		"no condition":           {by.Top(1), []index.Condition[entry[int64]]{nil}, index.ErrInvalid, "rank"},
	} {
		_, err := st.Top(t.Context(), c.order, c.conditions...)
		require.ErrorIs(t, err, c.want, name)
		about(t, err, "", c.index)
		if len(c.conditions) == 0 {
			_, err = drain(st.Find(t.Context(), c.order))
			require.ErrorIs(t, err, c.want, name)
			about(t, err, "", c.index)
			_, err = drain(st.IDs(t.Context(), c.order))
			require.ErrorIs(t, err, c.want, name)
			about(t, err, "", c.index)
		}
	}
	require.Equal(t, []string{"a"}, st.whole(by.Newest(3)))
}
