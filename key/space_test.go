package key_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/key"
)

var fixed = time.Date(2018, 2, 7, 1, 26, 13, 840_000_000, time.UTC)

func TestNewSpaceReportsEverythingAtOnceElseAUserFixesOneByOne(t *testing.T) {
	_, err := key.NewSpace("acme::b*", "a:b", 0, key.Redis)
	require.ErrorIs(t, err, key.ErrName)
	require.ErrorIs(t, err, key.ErrRange)
	require.Len(t, strings.Split(err.Error(), "\n"), 4)
}

func TestNamesStayInsideTheirLettersElseAKeyCannotBeTakenApart(t *testing.T) {
	for _, bad := range []string{"", ".", ".a", "~a", "a b", "a{", "}", "é", "a\x00", "a*", "a%", strings.Repeat("n", 65)} {
		_, err := key.NewSpace(bad, "account", 1, key.Redis)
		require.ErrorIs(t, err, key.ErrName, "owner %q", bad)
		_, err = key.NewSpace("acme:"+bad, "account", 1, key.Redis)
		require.ErrorIs(t, err, key.ErrName, "owner %q", bad)
		_, err = key.NewSpace("acme", bad, 1, key.Redis)
		require.ErrorIs(t, err, key.ErrName, "entity %q", bad)
	}
	_, err := key.NewSpace("acme", "a:b", 1, key.Redis)
	require.ErrorIs(t, err, key.ErrName)
	_, err = key.NewSpace(strings.Repeat("a:", 70)+"a", "account", 1, key.Redis)
	require.ErrorIs(t, err, key.ErrName)
	for _, good := range []string{"a", "-", "_x", "A-b_c.d", "0", strings.Repeat("n", 64)} {
		_, err := key.NewSpace(good+":"+good[:1], good, 1<<31-1, key.Redis)
		require.NoError(t, err, good)
	}
	for _, version := range []int{0, -1, 1 << 31} {
		_, err := key.NewSpace("acme", "account", version, key.Redis)
		require.ErrorIs(t, err, key.ErrRange)
	}
}

func TestIndexNamesStayInsideTheirLetters(t *testing.T) {
	s := space(t, key.Redis)
	for _, bad := range []string{"", "~a", "a.b", "a b", "é", "a:b", strings.Repeat("i", 65)} {
		require.ErrorIs(t, key.CheckIndexName(bad), key.ErrName)
		_, err := s.EntryBody(bad, 1, key.Text("x"))
		require.ErrorIs(t, err, key.ErrName)
		_, err = s.RankedBody(bad, 1, nil)
		require.ErrorIs(t, err, key.ErrName)
	}
	for _, good := range []string{"a", "-", "_", "last_seen", "by-Email2", strings.Repeat("i", 64)} {
		require.NoError(t, key.CheckIndexName(good))
	}
	for _, gen := range []int{0, -1, 1 << 31} {
		_, err := s.EntryBody("status", gen, key.Text("x"))
		require.ErrorIs(t, err, key.ErrRange)
	}
}

func TestRedisNeverRefusesAnIDOrAValueElseSomeRecordsCannotBeWritten(t *testing.T) {
	n := strings.Repeat("n", 64)
	s, err := key.NewSpace(n+":"+n[:63], n, 1<<31-1, key.Redis)
	require.NoError(t, err)
	tag, err := key.GroupBucket(strings.Repeat("g", 256), 16383, 16384)
	require.NoError(t, err)
	p := partition(t, s, tag)
	worst := strings.Repeat("x", 256)
	for _, k := range []string{record(t, p, worst), record(t, p, worst, worst), entry(t, p, n, 1<<31-1, key.Text(worst))} {
		require.LessOrEqual(t, len(k), key.Redis.MaxKey())
		_, err = key.Parse(k)
		require.NoError(t, err)
	}
}

func TestMemcachedLimitsAreCheckedHereElseTheServerRefusesTheWrite(t *testing.T) {
	_, err := key.NewSpace(strings.Repeat("a", 64), strings.Repeat("e", 64), 1, key.Memcached)
	require.ErrorIs(t, err, key.ErrTooLong)

	// The longest names that are allowed leave room for every id under every tag.
	s, err := key.NewSpace(strings.Repeat("a", 64), strings.Repeat("e", 36), 1, key.Memcached)
	require.NoError(t, err)
	for _, id := range append(oddTexts(), strings.Repeat("\xff", 22), strings.Repeat("\xff", 23)) {
		tag, err := key.GroupBucket(id, 16383, 16384)
		require.NoError(t, err)
		p := partition(t, s, tag)
		k := record(t, p, id)
		require.LessOrEqual(t, len(k), 250)
		for i := range len(k) {
			require.True(t, k[i] > ' ' && k[i] < 0x7f, "memcached takes no byte %#x", k[i])
		}
		if len(id) > 60 {
			_, err = p.Record(id, id)
			require.ErrorIs(t, err, key.ErrTooLong)
			body, err := s.EntryBody("status", 1, key.Text(id))
			require.NoError(t, err)
			_, err = p.Entry(body)
			require.ErrorIs(t, err, key.ErrTooLong)
		}
	}
}

func TestZeroRulesAreThoseOfRedis(t *testing.T) {
	require.Equal(t, space(t, key.Redis), space(t, key.Rules{}))
	require.Equal(t, space(t, key.Redis.Untrusted()), space(t, key.Rules{}.Untrusted()))
	require.Equal(t, "redis", key.Rules{}.Name())
	require.Equal(t, 1024, key.Rules{}.MaxKey())
	require.Equal(t, 256, key.Rules{}.MaxSegment())
	require.Equal(t, "memcached", key.Memcached.Name())
	require.Equal(t, 250, key.Memcached.MaxKey())
	require.Equal(t, 66, key.Memcached.MaxSegment())
}
