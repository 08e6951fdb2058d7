package membership_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/membership"
)

// blob is a record whose id and value may hold any bytes, which JSON texts may not.
type blob struct{ ID, City []byte }

func blobID(b blob) string { return string(b.ID) }

// segments are texts of every awkward kind, with how a key on Redis writes them.
var segments = map[string]string{
	"1": "1", "1:2": "1%3A2", "x": "x", "2:x": "2%3Ax", "a": "a", "a:b": "a%3Ab", "b:c": "b%3Ac", "c": "c",
	"a{b}c": "a%7Bb%7Dc", "{}": "%7B%7D", "{x": "%7Bx", "}": "%7D", "{item}": "%7Bitem%7D",
	"all": "all", "idx": "idx", "city": "city", "~city.1": "%7Ecity.1", "~~meta": "%7E~meta", "manifest": "manifest",
	"é": "é", "\x00": "%00", "a\nb": "a%0Ab", "\r\n": "%0D%0A", "\xff": "\xff", "\xc3\x28": "\xc3(", "%": "%25", "%41": "%2541",
	"A": "A", "*": "%2A", "?[^]\\": "%3F%5B%5E%5D%5C", ":v1": "%3Av1", "a,b": "a%2Cb", " ": " ", "true": "true",
	strings.Repeat("k", 1024): digested(strings.Repeat("k", 1024)),
}

func digested(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "%#" + hex.EncodeToString(sum[:])
}

func cityKeys(b blob) []string {
	if len(b.City) == 0 {
		return []string{"~city.1:%_"}
	}
	return []string{"~city.1:" + segments[string(b.City)]}
}

func TestIdsAndValuesOfAnyBytesAreFoundAndNeverMeet(t *testing.T) {
	byCity := membership.New("city", func(b blob) string { return string(b.City) })
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s, blobID, cityKeys, segments, byCity)
		var recs []blob
		for text := range segments {
			recs = append(recs, blob{[]byte(text), []byte(text)})
		}
		_, err := c.PutMany(t.Context(), recs)
		require.NoError(t, err)
		for text := range segments {
			require.Equal(t, []string{text}, c.ids(byCity.Is(text)), "%q", text)
			got, err := c.Get(t.Context(), text)
			require.NoError(t, err)
			require.Equal(t, text, string(got.City))
		}
		for i := range recs { // every value moves to another id
			recs[i].City = recs[(i+1)%len(recs)].ID
		}
		_, err = c.PutMany(t.Context(), recs)
		require.NoError(t, err)
		for _, rec := range recs {
			require.Equal(t, []string{string(rec.ID)}, c.ids(byCity.Is(string(rec.City))))
		}
		for text := range segments {
			require.NoError(t, c.Delete(t.Context(), text))
			require.Empty(t, c.mentions(text), "%q", text)
		}
	})
}

func TestTwoPairsOfValueAndIdThatReadAlikeStayApart(t *testing.T) {
	byCity := membership.New("city", func(b blob) string { return string(b.City) })
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s, blobID, cityKeys, segments, byCity)
		c.put(blob{[]byte("b:c"), []byte("a")}, blob{[]byte("c"), []byte("a:b")}, blob{[]byte("1:2"), []byte("x")}, blob{[]byte("1"), []byte("2:x")})
		require.Equal(t, []string{"b:c"}, c.ids(byCity.Is("a")))
		require.Equal(t, []string{"c"}, c.ids(byCity.Is("a:b")))
		require.Equal(t, []string{"1:2"}, c.ids(byCity.Is("x")))
		require.Equal(t, []string{"1"}, c.ids(byCity.Is("2:x")))
		require.NoError(t, c.Delete(t.Context(), "1"))
		require.Equal(t, []string{"1:2"}, c.ids(byCity.Is("x")))
	})
}

func TestAnEmptyIdIsRefusedAndAnEmptyTextIsAValue(t *testing.T) {
	byCity := membership.New("city", func(b blob) string { return string(b.City) })
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s, blobID, cityKeys, nil, byCity)
		c.put(blob{ID: []byte("none")})
		require.Equal(t, []string{"none"}, c.ids(byCity.Is("")))
		c.unchanged(func() {
			require.ErrorIs(t, c.Put(t.Context(), blob{City: []byte("x")}), index.ErrInvalid)
			require.ErrorIs(t, c.Create(t.Context(), blob{City: []byte("x")}), index.ErrInvalid)
			require.ErrorIs(t, c.Delete(t.Context(), ""), index.ErrInvalid)
		})
	})
}

// loose is a record whose value has its kind at run time only.
type loose struct {
	ID   string
	Kind string
	Text string
}

func (l loose) value() key.Value {
	switch l.Kind {
	case "bool":
		return key.Bool(l.Text == "true")
	case "number":
		v, err := key.Decimal(l.Text)
		if err != nil {
			panic(err)
		}
		return v
	}
	return key.Text(l.Text)
}

func looseID(l loose) string { return l.ID }

func TestTrueAsATruthValueATextAndANumberAreThreeValues(t *testing.T) {
	by := membership.New("v", loose.value)
	keys := map[string]string{"yes": "~v.1:~btrue", "text": "~v.1:true", "one": "~v.1:~n1", "digit": "~v.1:1", "mark": "~v.1:%7En1"}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s, looseID, func(l loose) []string { return []string{keys[l.ID]} }, nil, by)
		c.put(loose{"yes", "bool", "true"}, loose{"text", "text", "true"}, loose{"one", "number", "1.0"}, loose{"digit", "text", "1"}, loose{"mark", "text", "~n1"})
		require.Equal(t, []string{"yes"}, c.ids(by.Is(key.Bool(true))))
		require.Equal(t, []string{"text"}, c.ids(by.Is(key.Text("true"))))
		require.Equal(t, []string{"one"}, c.ids(by.Is(key.Int(1))))
		require.Equal(t, []string{"digit"}, c.ids(by.Is(key.Text("1"))))
		require.Equal(t, []string{"mark"}, c.ids(by.Is(key.Text("~n1"))))

		// Each value once, however often and in whatever order it is asked for.
		again := by.In(key.Text("1"), key.Int(1), key.Text("1"), key.Int(1), key.Text("true"), key.Bool(true), key.Text("true"))
		require.Equal(t, []string{"digit", "one", "text", "yes"}, c.ids(again))
	})
}

type sample struct {
	ID    string
	Value float64
}

func TestNumbersAreFoundByTheNumberGivenInWhateverSpelling(t *testing.T) {
	by := membership.New("v", func(s sample) float64 { return s.Value })
	keys := map[string]string{
		"million": "1000000", "huge": "100000000000000000000", "minus": "-1", "tenth": "1.1", "sextillion": "1e21",
		"zero": "0", "half": "-0.5",
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s, func(s sample) string { return s.ID }, func(s sample) []string { return []string{"~v.1:~n" + keys[s.ID]} }, nil, by)
		c.put(
			sample{"million", 1e6}, sample{"huge", 1e20}, sample{"minus", -1}, sample{"tenth", 1.10}, sample{"sextillion", 1e21},
			sample{"zero", math.Copysign(0, -1)}, sample{"half", -.5},
		)
		for id, spellings := range map[string][]string{
			"million": {"1000000", "1e6", "1E+6", "1000000.0"}, "huge": {"1e20", "100000000000000000000"}, "minus": {"-1", "-1.0", "-10e-1"},
			"tenth": {"1.1", "1.10", "11e-1"}, "sextillion": {"1e21", "1000000000000000000000"}, "zero": {"0", "-0", "0.0", "-0e5"}, "half": {"-0.5", "-5e-1"},
		} {
			for _, text := range spellings {
				n, err := strconv.ParseFloat(text, 64)
				require.NoError(t, err)
				require.Equal(t, []string{id}, c.ids(by.Is(n)), text)
				require.Equal(t, []string{id}, all(t, c.FindIDs(t.Context(), "v", text)), text)
			}
		}
		require.Empty(t, c.ids(by.Is(1)))
		require.Empty(t, c.ids(by.Is(1e6+1)))
	})
}

type seen struct {
	ID string
	At time.Time
}

func TestARecordSavedInOneTimeZoneIsFoundFromAnother(t *testing.T) {
	by := membership.New("at", func(s seen) time.Time { return s.At })
	karachi := time.FixedZone("Asia/Karachi", 5*60*60)
	instant := time.Date(2024, 1, 2, 3, 4, 5, 120_000_000, karachi)
	keys := map[string]string{"a": "~at.1:~t20240101T220405.12Z", "b": "~at.1:~t20240101T220405.120000001Z", "zero": "~at.1:~t00010101T000000Z"}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s, func(s seen) string { return s.ID }, func(s seen) []string { return []string{keys[s.ID]} }, nil, by)
		c.put(seen{"a", instant}, seen{"b", instant.Add(1)}, seen{ID: "zero"})
		require.Equal(t, []string{"a"}, c.ids(by.Is(instant.UTC())))
		require.Equal(t, []string{"b"}, c.ids(by.Is(instant.Add(1).In(time.FixedZone("", -3600)))))
		require.Equal(t, []string{"zero"}, c.ids(by.Is(time.Time{})))
		c.put(seen{"a", instant.UTC()}) // the same instant: nothing moves
		require.Equal(t, []string{"a"}, c.ids(by.Is(instant)))
	})
}

type place struct{ ID, Country, City string }

func TestACompositeValueIsFoundByItsPartsTogether(t *testing.T) {
	by := membership.New("in", func(p place) membership.Pair[string, string] { return membership.Of(p.Country, p.City) })
	keys := map[string]string{"1": "a,b%3Ac", "2": "a%3Ab,c", "3": "a%2Cb,%_", "4": "a,b%2C", "5": "%_,%_"}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s, func(p place) string { return p.ID }, func(p place) []string { return []string{"~in.1:~p" + keys[p.ID]} }, nil, by)
		c.put(place{"1", "a", "b:c"}, place{"2", "a:b", "c"}, place{"3", "a,b", ""}, place{"4", "a", "b,"}, place{"5", "", ""})
		require.Equal(t, []string{"1"}, c.ids(by.Is(membership.Of("a", "b:c"))))
		require.Equal(t, []string{"2"}, c.ids(by.Is(membership.Of("a:b", "c"))))
		require.Equal(t, []string{"3", "4"}, c.ids(by.In(membership.Of("a,b", ""), membership.Of("a", "b,"))))
		require.Equal(t, []string{"5"}, c.ids(by.Is(membership.Of("", ""))))
		require.Empty(t, c.ids(by.Is(membership.Of("a", "b"))))
	})
}
