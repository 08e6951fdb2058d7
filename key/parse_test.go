package key_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lockstep-go/lockstep/key"
)

// parsedKeys draws keys taken apart, as a program would build them.
func parsedKeys() *rapid.Generator[key.Parsed] {
	return rapid.Custom(func(t *rapid.T) key.Parsed {
		name := rapid.StringMatching(`[A-Za-z0-9_-][A-Za-z0-9_.-]{0,10}`)
		p := key.Parsed{
			Owner:   strings.Join(rapid.SliceOfN(name, 1, 3).Draw(t, "owner"), ":"),
			Entity:  name.Draw(t, "entity"),
			Version: rapid.IntRange(1, 1<<31-1).Draw(t, "version"),
			Kind:    key.Kind(rapid.IntRange(int(key.KindRecord), int(key.KindCatalog)).Draw(t, "kind")),
		}
		if p.Kind != key.KindCatalog {
			p.Tag = tags().Draw(t, "tag")
		}
		switch p.Kind {
		case key.KindRecord:
			p.ID = texts().Draw(t, "id")
			if p.HasField = rapid.Bool().Draw(t, "has field"); p.HasField {
				p.Field = texts().Draw(t, "field")
			}
		case key.KindIndex:
			p.Index = rapid.StringMatching(`[A-Za-z0-9_-]{1,20}`).Draw(t, "index")
			p.Gen = rapid.IntRange(1, 1<<31-1).Draw(t, "gen")
			if p.HasValue = rapid.Bool().Draw(t, "has value"); p.HasValue {
				p.Value = values().Draw(t, "value")
			}
		}
		return p
	})
}

// checkRoundTrip builds, parses and builds again.
func checkRoundTrip(t require.TestingT, p key.Parsed, r key.Rules) {
	k, err := p.Key(r)
	if err != nil {
		require.ErrorIs(t, err, key.ErrTooLong)
		require.Equal(t, "memcached", r.Name())
		return
	}
	got, err := key.Parse(k)
	require.NoError(t, err, "%q", k)
	strict, err := r.Parse(k)
	require.NoError(t, err)
	require.Equal(t, got, strict)
	again, err := got.Key(r)
	require.NoError(t, err)
	require.Equal(t, k, again)

	// Equal, but for what is now known as a digest only.
	want := p
	if got.Digested {
		want.ID, want.Digested = got.ID, true
	}
	if got.FieldDigested {
		want.Field, want.FieldDigested = got.Field, true
	}
	if got.Value.Kind() == "digest" {
		want.Value = want.Value.Digest()
	}
	if got.Tag.Digested() {
		s, err := key.NewSpace(p.Owner, p.Entity, p.Version, r)
		require.NoError(t, err)
		part, err := s.Partition(p.Tag)
		require.NoError(t, err)
		want.Tag = part.Tag()
	}
	require.Equal(t, want, got)
	if r == key.Redis {
		if got.Digested {
			require.Greater(t, 3*len(p.ID), 256, "a short id became a digest")
		} else {
			require.Equal(t, p.ID, got.ID)
		}
	}
}

func TestAKeyTakenApartIsWhatWasBuiltElseRepairDamagesData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkRoundTrip(t, parsedKeys().Draw(t, "key"), rules().Draw(t, "rules"))
	})
	for _, id := range oddTexts() {
		for _, r := range []key.Rules{key.Redis, key.Memcached, key.Redis.Untrusted()} {
			for _, tag := range []key.Tag{{}, key.Single("account"), key.Group(id)} {
				p := key.Parsed{Owner: "acme", Entity: "account", Version: 1, Tag: tag, Kind: key.KindRecord, ID: id}
				checkRoundTrip(t, p, r)
				p.Field, p.HasField = id, true
				checkRoundTrip(t, p, r)
				checkRoundTrip(t, key.Parsed{Owner: "acme", Entity: "account", Version: 1, Tag: tag, Kind: key.KindIndex, Index: "all", Gen: 1, Value: key.Text(id), HasValue: true}, r)
			}
		}
	}
}

func TestParseTakesAKeyOfEveryKindApart(t *testing.T) {
	base := key.Parsed{Owner: "acme:billing", Entity: "account", Version: 2, Tag: key.Single("account")}
	with := func(f func(*key.Parsed)) key.Parsed { p := base; f(&p); return p }
	const prefix = "acme:billing:account:{account}:"
	for k, want := range map[string]key.Parsed{
		prefix + "c%3Ad:v2": with(func(p *key.Parsed) { p.Kind, p.ID = key.KindRecord, "c:d" }),
		prefix + "a1:%_:v2": with(func(p *key.Parsed) { p.Kind, p.ID, p.HasField = key.KindRecord, "a1", true }),
		prefix + "~status.3:suspended:v2": with(func(p *key.Parsed) {
			p.Kind, p.Index, p.Gen, p.Value, p.HasValue = key.KindIndex, "status", 3, key.Text("suspended"), true
		}),
		prefix + "~recent.1:v2":             with(func(p *key.Parsed) { p.Kind, p.Index, p.Gen = key.KindIndex, "recent", 1 }),
		prefix + "~~manifest:v2":            with(func(p *key.Parsed) { p.Kind = key.KindManifest }),
		prefix + "~~meta:v2":                with(func(p *key.Parsed) { p.Kind = key.KindMeta }),
		prefix + "~~expiry:v2":              with(func(p *key.Parsed) { p.Kind = key.KindExpiry }),
		prefix + "~~floor:v2":               with(func(p *key.Parsed) { p.Kind = key.KindFloor }),
		prefix + "~~probe:v2":               with(func(p *key.Parsed) { p.Kind = key.KindProbe }),
		"acme:billing:account:~~catalog:v2": with(func(p *key.Parsed) { p.Kind, p.Tag = key.KindCatalog, key.Tag{} }),
		prefix + "%#9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08:v2": with(func(p *key.Parsed) {
			p.Kind, p.ID, p.Digested = key.KindRecord, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", true
		}),
	} {
		got, err := key.Parse(k)
		require.NoError(t, err, k)
		require.Equal(t, want, got)
		again, err := got.Key(key.Redis)
		require.NoError(t, err)
		require.Equal(t, k, again)
	}
	require.Equal(t, "record index manifest meta expiry floor probe catalog", strings.Join([]string{
		key.KindRecord.String(), key.KindIndex.String(), key.KindManifest.String(), key.KindMeta.String(),
		key.KindExpiry.String(), key.KindFloor.String(), key.KindProbe.String(), key.KindCatalog.String(),
	}, " "))
}

func TestParseRefusesOtherSpellingsElseTwoKeysPassForOne(t *testing.T) {
	const prefix = "acme:account:{account}:"
	for _, bad := range []string{
		"", ":", "a", ":v1", "a:v1", "acme:account:v1", "acme:account:{account}:a1", prefix + "a1:v", prefix + "a1:v0", prefix + "a1:v01", prefix + "a1:v-1", prefix + "a1:v1 ",
		prefix + "a1:v2147483648", prefix + "a1:V1", prefix + "a1", prefix + ":v1", prefix + "v1", prefix + "a1::v1", prefix + "a1:b:c:v1",
		"account:{account}:a1:v1", ":account:{account}:a1:v1", "acme::{account}:a1:v1", "acme:.x:{account}:a1:v1", "ac me:account:{account}:a1:v1",
		"acme:account:{account:a1:v1", "acme:account:account}:a1:v1", "acme:account:{account}a1:v1", "acme:account:{{account}}:a1:v1", "acme:account{account}:a1:v1",
		"acme:account:{a.b}:a1:v1", "acme:account:{a%2e}:a1:v1", "acme:account:{a.1.hh}:a1:v1", "acme:account:{a.1.abc}:a1:v1", "acme:account:{a.01.hhh}:a1:v1", "acme:account:{a.16384.hhh}:a1:v1", "acme:account:{a.1.hhh.}:a1:v1",
		"acme:account:{.1.hhh}:a1:v1", "acme:account:{%#00}:a1:v1", "acme:account:{~a}:a1:v1",
		prefix + "%41:v1", prefix + "%3a:v1", prefix + "%:v1", prefix + "%3:v1", prefix + "a%7E:v1", prefix + "~a:v1", prefix + "%_%_:v1", prefix + "a%_:v1", prefix + "a\x00:v1", prefix + "{x:v1", prefix + "a,b:v1", prefix + "a*:v1",
		prefix + "é%C3%A9:v1", prefix + "a b%20:v1", prefix + strings.Repeat("x", 257) + ":v1", prefix + "%20" + strings.Repeat("x", 64) + ":v1",
		prefix + "~~catalog:v1", prefix + "~~record:v1", prefix + "~~:v1", prefix + "~~manifest:x:v1", "acme:account:{}:~~catalog:v1", "acme:account:~~manifest:v1", "acme:~~catalog:v1",
		strings.Repeat("x", 2000) + ":v1", strings.Repeat("a:", 100) + "{t}:x:v1",
		strings.Repeat("a", 64) + ":account:{" + strings.Repeat("t", 66) + "}:%20" + strings.Repeat("x", 63) + ":" + strings.Repeat("x", 66) + ":v1",
	} {
		_, err := key.Parse(bad)
		require.ErrorIs(t, err, key.ErrMalformed, "%q", bad)
	}
	const other = prefix + "a%20b:v1"
	_, err := key.Parse(other)
	require.NoError(t, err)
	_, err = key.Memcached.Parse(other)
	require.NoError(t, err)
	_, err = key.Redis.Parse(other)
	require.ErrorIs(t, err, key.ErrMalformed, "Redis spells it with a blank")
}

func TestKeyRefusesADigestThatIsNoneElseAKeyIsInvented(t *testing.T) {
	p := key.Parsed{Owner: "acme", Entity: "account", Version: 1, Kind: key.KindRecord, ID: "zz", Digested: true}
	_, err := p.Key(key.Redis)
	require.ErrorIs(t, err, key.ErrMalformed)
	p = key.Parsed{Owner: "acme", Entity: "account", Version: 1, Kind: key.KindRecord, HasField: true, Field: "zz", FieldDigested: true}
	_, err = p.Key(key.Redis)
	require.ErrorIs(t, err, key.ErrMalformed)
	_, err = key.Parsed{Owner: "acme", Entity: "account", Version: 1, Kind: key.KindIndex, Index: "~", Gen: 1}.Key(key.Redis)
	require.ErrorIs(t, err, key.ErrName)
}

func FuzzParseBuild(f *testing.F) {
	for _, k := range []string{
		"acme:account:{account}:a1:v1", "acme:billing:account:{account.17.hNU}:c%3Ad:note:v2", "a:b:{}:%_:v1", "a:b:{%_}:~x.1:~p~pa,b,~n-0.5:v1",
		"a:b:~~catalog:v9", "a:b:{x}:~~manifest:v1", "a:b:{%C3%A9}:~x.1:~t20180207T012613.84Z:v1", "a:b:{x}:~x.1:%#" + strings.Repeat("0", 64) + ":v1", "a:b:{\xff}:~x.2147483647:~n1e400:v1",
	} {
		f.Add(k, "a", "c:d", "é", uint16(7))
	}
	for _, id := range oddTexts() {
		f.Add(id, id, id, id, uint16(len(id)))
	}
	f.Fuzz(func(t *testing.T, k, tag, a, b string, pick uint16) {
		for _, r := range []key.Rules{key.Redis, key.Memcached} {
			if p, err := r.Parse(k); err == nil {
				again, err := p.Key(r)
				require.NoError(t, err)
				require.Equal(t, k, again)
				loose, err := key.Parse(k)
				require.NoError(t, err)
				require.Equal(t, p, loose)
			}
		}
		if p, err := key.Parse(k); err == nil {
			redis, rerr := p.Key(key.Redis)
			memcached, merr := p.Key(key.Memcached)
			require.True(t, rerr == nil && redis == k || merr == nil && memcached == k, "%q rebuilds to %q and %q", k, redis, memcached)
		} else {
			require.ErrorIs(t, err, key.ErrMalformed)
		}

		all := []key.Rules{key.Redis, key.Memcached, key.Redis.Untrusted(), key.Memcached.Untrusted()}
		r := all[pick%4]
		p := key.Parsed{Owner: "acme", Entity: "account", Version: 1 + int(pick), Kind: key.KindRecord, ID: a, Field: b, HasField: true}
		n := 1 + int(pick)%512
		switch pick / 4 % 4 {
		case 1:
			p.Tag = key.Group(tag)
		case 2:
			p.Tag, _ = key.Bucket(tag, n/2, n)
		case 3:
			p.Tag, _ = key.GroupBucket(tag, n/2, n)
		}
		checkRoundTrip(t, p, r)
		v := key.Pair(key.Text(a), key.Pair(key.Text(b), key.Int(int64(pick))))
		if d, err := key.Decimal(a); err == nil {
			v = d
		} else if pick%8 == 0 {
			v = key.Text(a)
		}
		checkRoundTrip(t, key.Parsed{Owner: "acme", Entity: "account", Version: 1, Tag: p.Tag, Kind: key.KindIndex, Index: "x", Gen: 1 + int(pick), Value: v, HasValue: true}, r)
	})
}
