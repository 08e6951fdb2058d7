package membership_test

import (
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/lua"
	"github.com/lockstep-go/lockstep/membership"
)

// user has a value that may be absent, several that may repeat, and one that is its own.
type user struct {
	ID    string
	Team  *string
	Tags  []string
	Email *string
	Note  string
}

var (
	byTeam  = membership.Sparse("team", func(u user) (string, bool) { return deref(u.Team) })
	byTag   = membership.Multi("tag", func(u user) []string { return u.Tags })
	byEmail = membership.Unique("email", func(u user) (string, bool) { return deref(u.Email) }, membership.Fold)
)

func deref(p *string) (string, bool) {
	if p == nil {
		return "", false
	}
	return *p, true
}

func ptr(s string) *string { return &s }

func openUsers(t *testing.T, s *redistest.Server) store[user] {
	t.Helper()
	segment := func(s string) string {
		if s == "" {
			return "%_"
		}
		return s
	}
	return open(t, s, func(u user) string { return u.ID }, func(u user) (keys []string) {
		if u.Team != nil {
			keys = append(keys, "~team.1:"+segment(*u.Team))
		}
		for _, tag := range u.Tags {
			keys = append(keys, "~tag.1:"+segment(tag))
		}
		if u.Email != nil {
			lower := map[string]string{"Ann@X.org": "ann@x.org"}
			if l, ok := lower[*u.Email]; ok {
				return append(keys, "~email.1:"+l)
			}
			keys = append(keys, "~email.1:"+segment(*u.Email))
		}
		return keys
	}, nil, byTeam, byTag, byEmail)
}

func TestAValueTwiceInOneListIsOneEntryAndLeavesWithItsLastMention(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := openUsers(t, s)
		c.put(user{ID: "1", Tags: []string{"a", "a", "b", "a"}}, user{ID: "2", Tags: []string{"a"}})
		require.Equal(t, []string{"1", "2"}, c.ids(byTag.Is("a")))
		require.Equal(t, []string{"1", "2"}, c.ids(byTag.In("a", "b", "a")), "each record once")
		c.put(user{ID: "1", Tags: []string{"a", "b"}}) // one mention of three is left
		require.Equal(t, []string{"1", "2"}, c.ids(byTag.Is("a")))
		c.put(user{ID: "1", Tags: []string{"b", "b"}})
		require.Equal(t, []string{"2"}, c.ids(byTag.Is("a")))
		require.Equal(t, []string{"1"}, c.ids(byTag.Is("b")))
	})
}

func TestAFieldThatGoesFromNothingToAValueAndBackIsFoundExactlyWhileItHasOne(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := openUsers(t, s)
		for range 2 {
			c.put(user{ID: "1", Team: ptr("red")})
			require.Equal(t, []string{"1"}, c.ids(byTeam.Is("red")))
			_, err := c.Update(t.Context(), "1", func(u *user) error { u.Team = nil; return nil })
			require.NoError(t, err)
			require.Empty(t, c.ids(byTeam.Is("red")))
			got, err := c.Get(t.Context(), "1")
			require.NoError(t, err)
			require.Nil(t, got.Team)
		}
	})
}

func TestEmptyNilAndAbsentAreThreeCases(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := openUsers(t, s)
		c.put(user{ID: "empty", Team: ptr("")}, user{ID: "nil"}, user{ID: "named", Team: ptr("red")})
		require.Equal(t, []string{"empty"}, c.ids(byTeam.Is("")), `"" is a value, nil is none`)
		require.Equal(t, []string{"named"}, c.ids(byTeam.Is("red")))
	})
	// An index that answers who has no team is one more index over the same field.
	without := membership.New("has_team", func(u user) bool { return u.Team != nil })
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s, func(u user) string { return u.ID }, func(u user) []string {
			if u.Team == nil {
				return []string{"~has_team.1:~bfalse"}
			}
			return []string{"~has_team.1:~btrue"}
		}, nil, without)
		c.put(user{ID: "empty", Team: ptr("")}, user{ID: "nil"})
		require.Equal(t, []string{"nil"}, c.ids(without.Is(false)))
	})
}

func TestAnEmptyListHasNoEntryAndLoadsAsItWas(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := openUsers(t, s)
		c.put(user{ID: "1", Tags: []string{}}, user{ID: "2"}, user{ID: "3", Tags: []string{""}}, user{ID: "4", Tags: []string{"a"}})
		require.Equal(t, []string{"3"}, c.ids(byTag.Is("")), "a list with an empty text is not empty")
		got, err := c.Get(t.Context(), "1")
		require.NoError(t, err)
		require.Equal(t, []string{}, got.Tags)
		got, err = c.Get(t.Context(), "2")
		require.NoError(t, err)
		require.Nil(t, got.Tags)
		c.put(user{ID: "4", Tags: []string{}})
		require.Empty(t, c.ids(byTag.Is("a")))
	})
}

func TestRecordsWithoutAUniqueValueDoNotConflict(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := openUsers(t, s)
		c.put(user{ID: "1"}, user{ID: "2"}, user{ID: "3", Email: ptr("")})
		var conflict *index.ConflictError
		c.unchanged(func() {
			// This declaration says that "" is a value; with `return u.Email, u.Email != ""` it would be none.
			require.ErrorAs(t, c.Put(t.Context(), user{ID: "4", Team: ptr("red"), Email: ptr("")}), &conflict)
		})
		require.Equal(t, index.ConflictError{Entity: "acme:shop:item", ID: "4", Index: "email", Value: "%_", Holder: "3"}, *conflict)
	})
}

func TestAValueIsFreeAgainWhenItsHolderIsDeletedUpdatedOrTakenAway(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := openUsers(t, s)
		c.put(user{ID: "1", Email: ptr("Ann@X.org")})
		require.ErrorIs(t, c.Create(t.Context(), user{ID: "2", Email: ptr("ann@x.org")}), index.ErrConflict)
		_, err := c.Get(t.Context(), "2")
		require.ErrorIs(t, err, index.ErrNotFound)
		require.NoError(t, c.Delete(t.Context(), "1")) // by id alone: nothing of the record had to be known
		c.put(user{ID: "2", Email: ptr("ann@x.org")}, user{ID: "2", Email: ptr("b@x.org")}, user{ID: "3", Email: ptr("ann@x.org")})
		require.NoError(t, s.Client(t).Del(t.Context(), at+"3:v1").Err())
		c.put(user{ID: "4", Email: ptr("ann@x.org")})
		got, err := c.One(t.Context(), byEmail.Is("ANN@x.org"))
		require.NoError(t, err)
		require.Equal(t, "4", got.ID)
		require.Empty(t, c.mentions("3"))
	})
}

func TestADeleteOutsideAPartialIndexReleasesNobodysValue(t *testing.T) {
	// Only active users claim their name.
	byName := membership.Unique("name", func(u user) (string, bool) { return u.Note, u.Team != nil })
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s, func(u user) string { return u.ID }, func(u user) []string {
			if u.Team == nil {
				return nil
			}
			return []string{"~name.1:" + u.Note}
		}, nil, byName)
		c.put(user{ID: "1", Note: "ann"}, user{ID: "2", Note: "ann", Team: ptr("red")})
		require.NoError(t, c.Delete(t.Context(), "1"))
		require.Equal(t, []string{"2"}, c.ids(byName.Is("ann")))
		require.ErrorIs(t, c.Put(t.Context(), user{ID: "3", Note: "ann", Team: ptr("red")}), index.ErrConflict)
		c.put(user{ID: "2", Note: "ann"})
		c.put(user{ID: "3", Note: "ann", Team: ptr("red")})
	})
}

func TestOfSixteenClaimsOfOneValueExactlyOneWins(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := openUsers(t, s)
		for round := range 10 {
			email := ptr(string(rune('a'+round)) + "@x.org")
			errs := make([]error, 16)
			var claims sync.WaitGroup
			for i := range errs {
				claims.Go(func() { errs[i] = c.Put(t.Context(), user{ID: string(rune('A' + i)), Email: email}) })
			}
			claims.Wait()
			won := ""
			for i, err := range errs {
				if err == nil {
					require.Empty(t, won, "two winners")
					won = string(rune('A' + i))
					continue
				}
				require.ErrorIs(t, err, index.ErrConflict)
			}
			require.NotEmpty(t, won, "no winner")
			require.Equal(t, []string{won}, c.ids(byEmail.Is(*email)))
		}
	})
}

type reading struct {
	ID     string
	Sensor string
	Value  float64
	Parts  []float64
}

func TestAValueThatCannotBeIndexedIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	bySensor := membership.New("sensor", func(r reading) string { return r.Sensor })
	byValue := membership.New("value", func(r reading) float64 { return r.Value })
	byPart := membership.Multi("part", func(r reading) []float64 { return r.Parts })
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s, func(r reading) string { return r.ID }, func(r reading) []string {
			return []string{"~sensor.1:" + r.Sensor, "~value.1:~n1"}
		}, nil, bySensor, byValue, byPart)
		c.put(reading{ID: "1", Sensor: "a", Value: 1})
		refused := func(err error, id, ix string) {
			t.Helper()
			require.ErrorIs(t, err, index.ErrInvalid)
			require.ErrorIs(t, err, key.ErrNaN)
			var about *index.Error
			require.ErrorAs(t, err, &about)
			require.Equal(t, []string{"acme:shop:item", id, ix}, []string{about.Entity, about.ID, about.Index})
		}
		c.unchanged(func() {
			refused(c.Put(t.Context(), reading{ID: "1", Sensor: "b", Value: math.NaN()}), "1", "value")
			refused(c.Create(t.Context(), reading{ID: "2", Sensor: "b", Value: math.NaN()}), "2", "value")
			refused(c.Put(t.Context(), reading{ID: "1", Sensor: "b", Parts: []float64{1, math.NaN()}}), "1", "part")
			_, err := c.Update(t.Context(), "1", func(r *reading) error { r.Sensor, r.Value = "b", math.NaN(); return nil })
			refused(err, "1", "value")
		})
		out, err := c.PutMany(t.Context(), []reading{{ID: "2", Sensor: "a", Value: math.NaN()}, {ID: "3", Sensor: "a", Value: 1}})
		require.ErrorIs(t, err, key.ErrNaN)
		refused(out[0].Err, "2", "value")
		require.NoError(t, out[1].Err, "the others of a batch are written")
		require.Equal(t, []string{"1", "3"}, c.ids(bySensor.Is("a")))

		_, err = c.Count(t.Context(), byValue.Is(math.NaN()))
		require.ErrorIs(t, err, key.ErrNaN)
		for _, err := range c.Find(t.Context(), byValue.In(1, math.NaN())) {
			require.ErrorIs(t, err, key.ErrNaN, "no record is found by half a condition")
		}
	})
}

func TestNoValuesMatchNoRecord(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := openUsers(t, s)
		c.put(user{ID: "1", Team: ptr(""), Tags: []string{""}, Email: ptr("")})
		require.Empty(t, c.ids(byTeam.In()))
		require.Empty(t, c.ids(byTag.In()))
		require.Empty(t, c.ids(byEmail.In()))
	})
}

// price is a text of its own making, which cannot always be made.
type price int

var errPrice = errors.New("no price")

func (p price) MarshalText() ([]byte, error) {
	if p < 0 {
		return nil, errPrice
	}
	return []byte(time.Duration(p).String()), nil
}

func TestAMarshalerThatFailsIsRefusedWithItsOwnError(t *testing.T) {
	by := membership.New("price", func(p sample) price { return price(p.Value) })
	c := open(t, redistest.Mini(t), func(s sample) string { return s.ID }, func(sample) []string { return []string{"~price.1:7ns"} }, nil, by)
	c.put(sample{"1", 7})
	c.unchanged(func() {
		err := c.Put(t.Context(), sample{"1", -1})
		require.ErrorIs(t, err, errPrice)
		require.ErrorIs(t, err, index.ErrInvalid)
	})
	require.Equal(t, []string{"1"}, c.ids(by.Is(7)))
}

func TestADefinitionThatChangedIsBuiltBesideTheOldOne(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		rdb := s.Client(t)
		redistest.Checked(rdb, lua.Sources)
		declare := func(o ...membership.Option) (*membership.Index[user, string], *index.Collection[user]) {
			ix := membership.New("note", func(u user) string { return u.Note }, o...)
			c, err := index.Open(t.Context(), rdb, index.Define("acme:shop", "item", index.Options[user]{
				ID: func(u user) string { return u.ID }, Version: 1, Lifetime: index.Forever, Indexes: []index.Index[user]{ix},
			}))
			require.NoError(t, err)
			return ix, c
		}
		first, one := declare()
		require.NoError(t, one.Put(t.Context(), user{ID: "1", Note: "A"}))
		second, two := declare(membership.Fold)
		_, err := two.Count(t.Context(), second.Is("a"))
		require.ErrorIs(t, err, index.ErrNotReady, "never a short list")
		require.Equal(t, []string{"1"}, rdb.SMembers(t.Context(), at+"~note.1:A:v1").Val(), "the old entries stay until their record is written")
		require.NoError(t, two.Put(t.Context(), user{ID: "1", Note: "A"}))
		require.Empty(t, rdb.SMembers(t.Context(), at+"~note.1:A:v1").Val())
		require.Equal(t, []string{"1"}, rdb.SMembers(t.Context(), at+"~note.2:a:v1").Val())
		_, err = one.Count(t.Context(), first.Is("A"))
		require.ErrorIs(t, err, index.ErrNotReady, "the old index is no longer whole either")
	})
}
