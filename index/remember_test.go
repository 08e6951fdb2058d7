package index_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

// heavier adds one to the weight of an item.
func heavier(i *item) error {
	i.Weight++
	return nil
}

// TestAnUpdateOfWhatTheCollectionWroteItselfIsOneRoundTrip counts trips with two collections, as two processes have them.
func TestAnUpdateOfWhatTheCollectionWroteItselfIsOneRoundTrip(t *testing.T) {
	redistest.EachAtOnce(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		a, rdb := open(t, s, items)
		b, other := open(t, s, items)
		mine, theirs := redistest.Count(rdb), redistest.Count(other)
		weight := 0.0
		// update changes x and holds how many trips that took, and how many rounds.
		update := func(c *index.Collection[item], color string, trips, rounds int) {
			t.Helper()
			counter := map[*index.Collection[item]]*redistest.Counter{a: mine, b: theirs}[c]
			counter.Reset()
			weight++
			ran := 0
			rec, err := c.Update(ctx, "x", func(i *item) error {
				ran++
				i.Color = color
				return heavier(i)
			})
			require.NoError(t, err)
			commands := counter.Commands()
			require.Equal(t, trips, commands["evalsha"]+commands["eval"]+commands["multi"], "%v", commands)
			require.Equal(t, rounds, ran)
			require.Equal(t, item{ID: "x", Color: color, Weight: weight}, rec)
			stored, err := b.Get(ctx, "x")
			require.NoError(t, err)
			require.Equal(t, rec, stored)
			verify(t, rdb)
		}
		require.NoError(t, a.Put(ctx, item{ID: "x", Color: "red"}))
		for _, color := range []string{"green", "green", "blue", "red"} {
			update(a, color, 1, 1)
		}
		update(b, "white", 2, 1) // has never seen it
		update(a, "white", 2, 2) // what it remembers is no longer true
		update(b, "black", 2, 2) // the same
		for range 3 {            // others write it too: it is read at once, and written in vain no more
			update(a, "red", 2, 1)
			update(b, "black", 2, 1)
		}
		update(a, "white", 2, 1)
		update(a, "white", 2, 1) // is found as it was left
		update(a, "black", 1, 1)
	})
}

// TestALoadOfDataTakesNoPlaceInMemory writes many records in one call: those that are remembered stay so, others do not
// become it.
func TestALoadOfDataTakesNoPlaceInMemory(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		counter := redistest.Count(rdb)
		trips := func(fn func()) int {
			counter.Reset()
			fn()
			return counter.Trips()
		}
		recs := make([]item, 60)
		for i := range recs {
			recs[i] = item{ID: fmt.Sprint("i", i), Color: "red"}
		}
		require.NoError(t, c.Put(ctx, recs[7]))
		recs[7].Color = "blue"
		_, err := c.PutMany(ctx, recs)
		require.NoError(t, err)
		update := func(id string) func() {
			return func() {
				rec, err := c.Update(ctx, id, func(i *item) error { i.Color += "dish"; return nil })
				require.NoError(t, err)
				require.Equal(t, map[string]string{"i7": "bluedish", "i8": "reddish", "i9": "reddish"}[id], rec.Color)
			}
		}
		require.Equal(t, 1, trips(update("i7")))
		require.Equal(t, 2, trips(update("i8")))
		_, err = c.PutMany(ctx, recs[:10])
		require.NoError(t, err)
		require.Equal(t, 1, trips(update("i9")), "a few are remembered")
		_, err = c.DeleteMany(ctx, []string{"i9"})
		require.NoError(t, err)
		_, err = c.Update(ctx, "i9", heavier)
		require.ErrorIs(t, err, index.ErrNotFound)
		verify(t, rdb)
	})
}

func TestAnUpdateDoesNotOverwriteWhatWasWrittenByHand(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		const at = "acme:item:{item}:x:v1"
		require.NoError(t, c.Put(ctx, item{ID: "x", Color: "red"}))
		byHand, err := json.Marshal(item{ID: "x", Color: "red", Weight: 7, Tags: []string{"by hand"}})
		require.NoError(t, err)
		require.NoError(t, rdb.Set(ctx, at, byHand, 0).Err())
		rec, err := c.Update(ctx, "x", heavier)
		require.NoError(t, err)
		require.Equal(t, item{ID: "x", Color: "red", Weight: 8, Tags: []string{"by hand"}}, rec)
		verify(t, rdb)

		require.NoError(t, rdb.Del(ctx, at).Err())
		_, err = c.Update(ctx, "x", heavier)
		require.ErrorIs(t, err, index.ErrNotFound)
		require.NoError(t, c.Put(ctx, item{ID: "x", Color: "red"}))
		require.NoError(t, rdb.Del(ctx, at).Err())
		require.NoError(t, rdb.SAdd(ctx, at, "foreign").Err())
		_, err = c.Update(ctx, "x", heavier)
		require.ErrorIs(t, err, index.ErrKeyType)
		about(t, err, "x", "")
	})
}

// TestAnErrorOfAnUpdateIsAboutTheStoredState lets others change what a collection remembers, and refuses by what it is.
func TestAnErrorOfAnUpdateIsAboutTheStoredState(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		a, rdb := open(t, s, items)
		b, _ := open(t, s, items)
		soldOut := errors.New("sold out")
		buy := func(i *item) error {
			if i.Weight == 0 {
				return soldOut
			}
			i.Weight--
			return nil
		}
		require.NoError(t, a.Put(ctx, item{ID: "x", Color: "red"}))
		_, err := a.Update(ctx, "x", buy)
		require.ErrorIs(t, err, soldOut)
		require.NoError(t, a.Put(ctx, item{ID: "x", Color: "red"}))
		require.NoError(t, b.Put(ctx, item{ID: "x", Color: "blue", Weight: 2}))
		rec, err := a.Update(ctx, "x", buy)
		require.NoError(t, err)
		require.Equal(t, item{ID: "x", Color: "blue", Weight: 1}, rec)

		// The same of a write that is refused: another id, a record that is too large, a value in other hands.
		require.NoError(t, b.Put(ctx, item{ID: "x", Color: "y"}))
		rec, err = a.Update(ctx, "x", func(i *item) error {
			if i.Color == "blue" {
				i.ID = "z"
			}
			return heavier(i)
		})
		require.NoError(t, err)
		require.Equal(t, item{ID: "x", Color: "y", Weight: 1}, rec)
		require.NoError(t, b.Put(ctx, item{ID: "y", Color: "red", Code: "k"}))
		_, err = a.Update(ctx, "x", func(i *item) error { i.Code = "k"; return nil })
		require.ErrorIs(t, err, index.ErrConflict)
		verify(t, rdb)
	})
}

// TestAnUpdateFromMemoryLeavesTheLifetimeAndTheTokenAlone looks at what an update does not change.
func TestAnUpdateFromMemoryLeavesTheLifetimeAndTheTokenAlone(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		require.NoError(t, c.Put(ctx, item{ID: "x", Color: "red"}, index.Lives(time.Hour)))
		require.NoError(t, c.Touch(ctx, "x", index.Lives(2*time.Hour)))
		_, err := c.Update(ctx, "x", heavier)
		require.NoError(t, err)
		left := rdb.PTTL(ctx, "acme:item:{item}:x:v1").Val()
		require.InDelta(t, 2*time.Hour, left, float64(time.Minute))

		// A write whose lifetime is over is a delete, and remembered as none.
		require.NoError(t, c.Put(ctx, item{ID: "x", Color: "red"}, index.Until(time.Now().Add(-time.Second))))
		_, err = c.Update(ctx, "x", heavier)
		require.ErrorIs(t, err, index.ErrNotFound)

		require.NoError(t, c.Put(ctx, item{ID: "x", Color: "red"}))
		snap, err := c.Read(ctx, "x")
		require.NoError(t, err)
		require.NoError(t, c.Put(ctx, item{ID: "x", Color: "blue"}))
		_, err = c.Update(ctx, "x", heavier, index.IfToken(snap.Token))
		require.ErrorIs(t, err, index.ErrChanged, "the token is not that of the state that is remembered")
		verify(t, rdb)
	})
}

// greedy is a codec that scribbles over what it is given.
var greedy = index.Codec[item]{
	Encode: func(i item) ([]byte, error) { return json.Marshal(i) },
	Decode: func(_ string, raw []byte) (i item, err error) {
		err = json.Unmarshal(raw, &i)
		clear(raw)
		return i, err
	},
}

func TestACodecThatWritesIntoItsInputDoesNoHarm(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	c, rdb := open(t, s, index.Define("acme", "item", index.Options[item]{
		ID: func(i item) string { return i.ID }, Version: 1, Lifetime: index.Forever, Codec: greedy,
		Indexes: []index.Index[item]{byColor, byCode, byTag},
	}))
	require.NoError(t, c.Put(ctx, item{ID: "x", Color: "red"}))
	for n := range 5 {
		rec, err := c.Update(ctx, "x", heavier)
		require.NoError(t, err)
		require.EqualValues(t, n+1, rec.Weight)
	}
	verify(t, rdb)
}

// TestACounterIsExactWhateverItsWritersRemember counts up a few records with collections that remember much, little and
// nothing.
func TestACounterIsExactWhateverItsWritersRemember(t *testing.T) {
	redistest.EachAtOnce(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		rdb := s.Client(t)
		rounds := s.Size(200, 50)
		var wg sync.WaitGroup
		var first *index.Collection[item]
		for n, bytes := range []int{0, 300, -1, 0} {
			c, err := index.Open(ctx, rdb, items, index.OpenOptions{RecordCacheBytes: bytes})
			require.NoError(t, err)
			if first == nil {
				first = c
				for i := range 3 {
					require.NoError(t, c.Create(ctx, item{ID: fmt.Sprint("i", i), Color: "red"}))
				}
			}
			for w := range 2 {
				wg.Go(func() {
					for r := range rounds {
						_, err := c.Update(ctx, fmt.Sprint("i", (r+w)%3), func(i *item) error {
							i.Color = fmt.Sprint("c", n, r%4)
							return heavier(i)
						})
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		sum := 0.0
		for i := range 3 {
			rec, err := first.Get(ctx, fmt.Sprint("i", i))
			require.NoError(t, err)
			sum += rec.Weight
		}
		require.EqualValues(t, 8*rounds, sum)
		verify(t, rdb)
	})
}

// TestWritersThatRememberDoNotStarveOneThatMustRead lets some collections update a record without a pause, in one round trip
// each where nobody came between, while another one gets its turns.
func TestWritersThatRememberDoNotStarveOneThatMustRead(t *testing.T) {
	for _, fast := range []int{1, 4} {
		t.Run(fmt.Sprint(fast), func(t *testing.T) {
			redistest.EachAtOnce(t, func(t *testing.T, s *redistest.Server) {
				ctx := context.Background()
				slow, rdb := open(t, s, items, index.OpenOptions{RecordCacheBytes: -1, RowCacheBytes: -1})
				require.NoError(t, slow.Put(ctx, item{ID: "x", Color: "red"}))
				done := make(chan struct{})
				var g errgroup.Group
				var updates atomic.Int64
				for range fast {
					c, _ := open(t, s, items)
					g.Go(func() error {
						for {
							select {
							case <-done:
								return nil
							default:
							}
							if _, err := c.Update(ctx, "x", heavier); err != nil {
								return err
							}
							updates.Add(1)
						}
					})
				}
				runs := 0
				for range 40 {
					_, err := slow.Update(ctx, "x", func(i *item) error {
						runs++
						return heavier(i)
					})
					require.NoError(t, err)
				}
				close(done)
				require.NoError(t, g.Wait())
				rec, err := slow.Get(ctx, "x")
				require.NoError(t, err)
				require.EqualValues(t, updates.Load()+40, rec.Weight)
				t.Logf("%d updates of the others, %d rounds for 40", updates.Load(), runs)
				verify(t, rdb)
			})
		})
	}
}

// TestAnAttemptThatComesLateDoesNotFindItsBytesAgain repeats an update whose reply did not come in time. The first attempt
// reaches the server after others have taken the change back: the bytes are those that it was made for.
func TestAnAttemptThatComesLateDoesNotFindItsBytesAgain(t *testing.T) {
	for name, bytes := range map[string]int{"remembered": 0, "read": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Redis(t)
			ctx := context.Background()
			p := redistest.NewProxy(t, s)
			a, err := index.Open(ctx, p.Client(t, func(o *redis.UniversalOptions) {
				o.ReadTimeout, o.MaxRetries = 100*time.Millisecond, -1
			}), items, index.OpenOptions{RecordCacheBytes: bytes})
			require.NoError(t, err)
			b, _ := open(t, s, items)
			require.NoError(t, a.Put(ctx, item{ID: "x", Color: "red"}))
			var struck atomic.Bool
			p.Inject(redistest.Writes, func(int, string) redistest.Fault {
				if struck.CompareAndSwap(false, true) {
					return redistest.Fault{Kind: redistest.Delay, For: 600 * time.Millisecond}
				}
				return redistest.Fault{}
			})
			_, err = a.Update(ctx, "x", heavier)
			require.NoError(t, err)
			_, err = b.Update(ctx, "x", func(i *item) error { i.Weight--; return nil })
			require.NoError(t, err)
			require.Never(t, func() bool {
				rec, err := b.Get(ctx, "x")
				return err != nil || rec.Weight != 0
			}, 900*time.Millisecond, 20*time.Millisecond)
		})
	}
}
