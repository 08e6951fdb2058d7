package key_test

import (
	"math"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lockstep-go/lockstep/key"
)

func space(t require.TestingT, r key.Rules) key.Space {
	s, err := key.NewSpace("acme:billing", "account", 2, r)
	require.NoError(t, err)
	return s
}

func partition(t require.TestingT, s key.Space, tag key.Tag) key.Partition {
	p, err := s.Partition(tag)
	require.NoError(t, err)
	return p
}

func record(t require.TestingT, p key.Partition, id string, field ...string) string {
	k, err := p.Record(id, field...)
	require.NoError(t, err)
	return k
}

func entry(t require.TestingT, p key.Partition, index string, gen int, v key.Value) string {
	body, err := p.Space().EntryBody(index, gen, v)
	require.NoError(t, err)
	k, err := p.Entry(body)
	require.NoError(t, err)
	return k
}

func decimal(t require.TestingT, s string) key.Value {
	v, err := key.Decimal(s)
	require.NoError(t, err)
	return v
}

// oddTexts are ids and values that have broken hand-written keys.
func oddTexts() []string {
	return []string{
		"", "all", "idx", "status", "recent", "~status.1", "~~manifest", "v2", "é", "\x00", "\xff\xfe",
		strings.Repeat("k", 1024), strings.Repeat("k", 256), strings.Repeat("k", 257), strings.Repeat("k", 66), strings.Repeat("k", 67),
		"c:d", "a:b", "a{b}c", "{}", "{x", "x}", "{", "}", "*", "a?b[c]\\^", "a,b", ",", "~p", "~pa,b", "~n1", "~btrue", "%", "%_", "%#", "%41",
		"%#" + strings.Repeat("0", 64), " ", "a b", "a\r\nb", "\x7f", "a.b", ".", "..", "1", "true", "1:2",
	}
}

// texts draws texts made of the pieces that matter to an encoder.
func texts() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"a", "b", "1", "0", ".", ":", "%", "_", "#", "{", "}", ",", "~", "~p", "~n", "~b", "~t", "*", "?", "\\", " ", "\x00", "\xff", "é",
		"%3A", "%_", "%#", "true", "v2", strings.Repeat("x", 60),
	})
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(piece, 0, 8), func(p []string) string { return strings.Join(p, "") }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
}

// values draws values of every kind, also pairs of pairs and digests.
func values() *rapid.Generator[key.Value] { return valuesOf(3) }

func valuesOf(depth int) *rapid.Generator[key.Value] {
	return rapid.Custom(func(t *rapid.T) key.Value {
		kinds := 8
		if depth == 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return key.Text(texts().Draw(t, "text"))
		case 1:
			return key.Bool(rapid.Bool().Draw(t, "bool"))
		case 2:
			return key.Int(rapid.Int64().Draw(t, "int"))
		case 3:
			f := rapid.Float64().Filter(func(f float64) bool { return !math.IsNaN(f) }).Draw(t, "float")
			v, err := key.Float(f, 64)
			require.NoError(t, err)
			return v
		case 4:
			v, err := key.Decimal(rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?(e[+-]?[0-9]{1,3})?`).Draw(t, "decimal"))
			require.NoError(t, err)
			return v
		case 5:
			v, err := key.Time(time.Unix(rapid.Int64Range(-62167219200, 253402300799).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")))
			require.NoError(t, err)
			return v
		case 6:
			return valuesOf(depth-1).Draw(t, "value").Digest()
		default:
			return key.Pair(valuesOf(depth-1).Draw(t, "a"), valuesOf(depth-1).Draw(t, "b"))
		}
	})
}

func tags() *rapid.Generator[key.Tag] {
	return rapid.Custom(func(t *rapid.T) key.Tag {
		name := texts().Draw(t, "name")
		n := rapid.IntRange(1, 600).Draw(t, "n")
		i := rapid.IntRange(0, n-1).Draw(t, "i")
		var tag key.Tag
		var err error
		switch rapid.IntRange(0, 3).Draw(t, "placement") {
		case 0:
		case 1:
			tag = key.Single(name)
		case 2:
			tag, err = key.Bucket(name, i, n)
		default:
			tag, err = key.GroupBucket(name, i, n)
		}
		require.NoError(t, err)
		return tag
	})
}

func rules() *rapid.Generator[key.Rules] {
	return rapid.SampledFrom([]key.Rules{key.Redis, key.Memcached, key.Redis.Untrusted(), key.Memcached.Untrusted(), {}})
}
