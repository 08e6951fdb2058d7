package key_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lockstep-go/lockstep/key"
)

func TestKeysAreSpelledAsPromisedElseStoredDataIsNotFoundAgain(t *testing.T) {
	s := space(t, key.Redis)
	p := partition(t, s, key.Single("account"))
	require.Equal(t, "acme:billing:account:", s.Prefix())
	require.Equal(t, "acme:billing:account:~~catalog:v2", s.Catalog())
	require.Equal(t, "acme:billing:account:{account}:a1:v2", record(t, p, "a1"))
	require.Equal(t, "acme:billing:account:{account}:a1:note:v2", record(t, p, "a1", "note"))
	require.Equal(t, "acme:billing:account:{account}:%_:%_:v2", record(t, p, "", ""))
	require.Equal(t, "acme:billing:account:{account}:~status.1:suspended:v2", entry(t, p, "status", 1, key.Text("suspended")))
	require.Equal(t, "acme:billing:account:{account}:~~manifest:v2", p.Manifest())
	require.Equal(t, "acme:billing:account:{account}:~~meta:v2", p.Meta())
	require.Equal(t, "acme:billing:account:{account}:~~expiry:v2", p.Expiry())
	require.Equal(t, "acme:billing:account:{account}:~~floor:v2", p.Floor())
	require.Equal(t, "acme:billing:account:{account}:~~probe:v2", p.Probe())

	plain, err := s.RankedBody("recent", 1, nil)
	require.NoError(t, err)
	eu := key.Text("eu")
	grouped, err := s.RankedBody("recent", 1, &eu)
	require.NoError(t, err)
	require.Equal(t, []string{"recent.1", "recent.1:eu"}, []string{plain, grouped})
	k, err := p.Entry(plain)
	require.NoError(t, err)
	require.Equal(t, "acme:billing:account:{account}:~recent.1:v2", k)

	require.Equal(t, "acme:billing:account:{}:s1:v2", record(t, partition(t, s, key.Tag{}), "s1"))
	require.Equal(t, -1, partition(t, s, key.Tag{}).Slot())
	require.Equal(t, s, p.Space())
	require.Equal(t, key.Single("account"), p.Tag())
	require.Equal(t, "acme:billing", s.Owner())
	require.Equal(t, "account", s.Entity())
	require.Equal(t, 2, s.Version())
	require.Equal(t, key.Redis, s.Rules())
}

func TestNoIDMovesAKeyToAnotherSlotElseAWriteIsCROSSSLOT(t *testing.T) {
	p := partition(t, space(t, key.Redis), key.Single("account"))
	check := func(t require.TestingT, p key.Partition, id string, v key.Value) {
		for _, k := range []string{record(t, p, id), record(t, p, id, id), entry(t, p, "status", 1, v), p.Manifest(), p.Meta(), p.Expiry(), p.Floor(), p.Probe()} {
			require.Equal(t, p.Slot(), key.Slot(k), "%q", k)
		}
	}
	for _, id := range oddTexts() {
		check(t, p, id, key.Text(id))
	}
	rapid.Check(t, func(t *rapid.T) {
		tag := tags().Filter(func(t key.Tag) bool { return !t.IsZero() }).Draw(t, "tag")
		p := partition(t, space(t, key.Redis), tag)
		check(t, p, texts().Draw(t, "id"), values().Draw(t, "value"))
	})
}

func TestDifferentInputsNeverShareAKeyElseOneRecordOverwritesAnother(t *testing.T) {
	p := partition(t, space(t, key.Redis), key.Single("account"))
	seen := map[string]string{}
	add := func(k, what string) {
		require.Empty(t, seen[k], "%s shares the key %q", what, k)
		seen[k] = what
	}
	for _, k := range []string{p.Manifest(), p.Meta(), p.Expiry(), p.Floor(), p.Probe(), p.Space().Catalog()} {
		add(k, k)
	}
	for _, a := range oddTexts() {
		add(record(t, p, a), "record "+a)
		for _, b := range oddTexts() {
			add(record(t, p, a, b), "record and field "+a+" | "+b)
		}
		for _, index := range []string{"status", "all", "idx", "v2"} {
			for gen := 1; gen <= 11; gen += 10 {
				add(entry(t, p, index, gen, key.Text(a)), "entry "+a)
			}
		}
	}

	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom([]key.Rules{key.Redis, key.Redis.Untrusted()}).Draw(t, "rules")
		a, b, c, d := texts().Draw(t, "a"), texts().Draw(t, "b"), texts().Draw(t, "c"), texts().Draw(t, "d")
		p := partition(t, space(t, r), key.Single("account"))
		require.Equal(t, a == b, record(t, p, a) == record(t, p, b))
		require.Equal(t, a == b && c == d, record(t, p, a, c) == record(t, p, b, d))
		require.NotEqual(t, record(t, p, a), record(t, p, b, c))
		require.NotEqual(t, record(t, p, a), entry(t, p, "status", 1, key.Text(b)))
		q := partition(t, space(t, r), key.Group(d))
		require.Equal(t, a == b && d == "account", record(t, p, a) == record(t, q, b))
	})
}

func TestVersionsAndGenerationsAreSeparateKeyspacesElseADeploymentReadsTheOtherShape(t *testing.T) {
	seen := map[string]bool{}
	for version := 1; version <= 12; version++ {
		s, err := key.NewSpace("acme", "account", version, key.Redis)
		require.NoError(t, err)
		p := partition(t, s, key.Single("account"))
		for _, k := range []string{s.Catalog(), p.Manifest(), p.Meta(), p.Expiry(), p.Floor(), p.Probe(), record(t, p, "v1"), entry(t, p, "s", 1, key.Text("v1")), entry(t, p, "s", 2, key.Text("v1"))} {
			require.False(t, seen[k], k)
			seen[k] = true
		}
	}
}

func TestKeysHoldNoPatternElseAPurgeHitsForeignKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := space(t, rules().Draw(t, "rules"))
		p := partition(t, s, tags().Draw(t, "tag"))
		for _, k := range []string{record(t, p, texts().Draw(t, "id")), s.Prefix()} {
			require.False(t, strings.ContainsAny(k, `*?[]\^`), "%q", k)
			require.True(t, strings.HasPrefix(k, s.Prefix()))
		}
	})
}

func TestEntryRefusesForeignBodiesElseADamagedRowDeletesOtherKeys(t *testing.T) {
	p := partition(t, space(t, key.Redis), key.Single("account"))
	for _, bad := range []string{
		"", ":", "status", "status.", "status.0", "status.01", "status.-1", "status.1.2", "status.99999999999", ".1:x", "~status.1:x", "sta tus.1:x",
		"status.1:", "status.1:a:b", "status.1:{x}", "status.1:a*", "status.1:a,b", "status.1:%", "status.1:%4", "status.1:%41", "status.1:%3a", "status.1:%_a", "status.1:%#", "status.1:%#00",
		"status.1:%#" + strings.Repeat("A", 64), "status.1:\x00", "status.1:~", "status.1:~x", "status.1:~n", "status.1:~n01", "status.1:~n1.0", "status.1:~n-0", "status.1:~n1e3", "status.1:~n1000000000000000000000", "status.1:~n12e20", "status.1:~nNaN",
		"status.1:~bTRUE", "status.1:~t2018", "status.1:~t20180230T000000Z", "status.1:~t20180207T012613.840Z", "status.1:~t20180207T012613,84Z", "status.1:~t20180207T012613+01", "status.1:~pa", "status.1:~pa,b,c", "status.1:~p~pa,b", "status.1:~p,",
		"status.1:a%2Eb", "status.1:a%7E", "status.1:%C3%A9", "status.1:" + strings.Repeat("x", 257), "status.1:x:v2", strings.Repeat("i", 65) + ".1",
	} {
		_, err := p.Entry(bad)
		require.ErrorIs(t, err, key.ErrMalformed, "%q", bad)
		_, err = key.Parse("acme:billing:account:{account}:~" + bad + ":v2")
		if bad != "status.1:%C3%A9" { // the spelling of another store
			require.ErrorIs(t, err, key.ErrMalformed, "%q", bad)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		bad := texts().Draw(t, "body")
		_, err := p.Entry(bad)
		_, perr := key.Redis.Parse("acme:billing:account:{account}:~" + bad + ":v2")
		if !strings.HasPrefix(bad, "~") {
			require.Equal(t, perr == nil, err == nil, "%q", bad)
		}
	})
}

func TestUntrustedShowsNothingThatAUserTypedElseKeysLeakIt(t *testing.T) {
	for _, r := range []key.Rules{key.Redis.Untrusted(), key.Memcached.Untrusted(), key.Rules{}.Untrusted()} {
		s := space(t, r)
		require.Equal(t, "{account}", partition(t, s, key.Single("account")).Tag().String())
		p := partition(t, s, key.Group("ann@x.org"))
		for _, k := range []string{
			record(t, p, "ann@x.org"), record(t, p, "ann@x.org", "note"), entry(t, p, "email", 1, key.Text("ann@x.org")),
			entry(t, p, "email", 1, key.Pair(key.Text("ann@x.org"), key.Text("ann@x.org"))), p.Meta(),
		} {
			require.NotContains(t, k, "ann")
		}
	}
	// A manifest row from before the change still names its keys.
	_, err := partition(t, space(t, key.Redis.Untrusted()), key.Single("account")).Entry("status.1:suspended")
	require.NoError(t, err)
}

func TestErrorsNeverTellAValueElseLogsLeakIt(t *testing.T) {
	s, err := key.NewSpace(strings.Repeat("a", 64), "account", 1, key.Memcached)
	require.NoError(t, err)
	p := partition(t, s, key.Group(strings.Repeat("g", 66)))
	secret := strings.Repeat("secret", 10)
	_, err = p.Record(secret, secret)
	require.ErrorIs(t, err, key.ErrTooLong)
	require.NotContains(t, err.Error(), "secret")
	_, err = p.Entry("x.1:secret:")
	require.ErrorIs(t, err, key.ErrMalformed)
	require.NotContains(t, err.Error(), "secret")
	_, err = key.Parse("secret")
	require.ErrorIs(t, err, key.ErrMalformed)
	require.NotContains(t, err.Error(), "secret")
	_, err = key.Decimal("secret")
	require.ErrorIs(t, err, key.ErrMalformed)
	require.NotContains(t, err.Error(), "secret")
}

func TestRecordTakesOneFieldAtMost(t *testing.T) {
	_, err := partition(t, space(t, key.Redis), key.Single("account")).Record("a", "b", "c")
	require.ErrorIs(t, err, key.ErrMalformed)
}

func TestZeroValuesAnswerWithAnErrorElseAProgramPanics(t *testing.T) {
	_, err := key.Space{}.Partition(key.Single("x"))
	require.ErrorIs(t, err, key.ErrName)
	_, err = key.Partition{}.Record("a")
	require.ErrorIs(t, err, key.ErrName)
	_, err = key.Partition{}.Entry("status.1:x")
	require.ErrorIs(t, err, key.ErrName)
	require.Equal(t, -1, key.Partition{}.Slot())
	_, err = key.Space{}.EntryBody("status", 1, key.Value{})
	require.NoError(t, err)
	_, err = key.Parsed{}.Key(key.Redis)
	require.Error(t, err)
	_, err = key.Parsed{Owner: "a", Entity: "b", Version: 1}.Key(key.Redis)
	require.ErrorIs(t, err, key.ErrMalformed)
	require.Equal(t, "unknown", key.Kind(0).String())
	require.Equal(t, "unknown", key.Kind(-1).String())
	require.Equal(t, "unknown", key.Kind(99).String())
}

func TestMakingAKeyIsOneAllocationElseEveryWritePays(t *testing.T) {
	s := space(t, key.Redis)
	p := partition(t, s, key.Single("account"))
	v := key.Pair(key.Text("eu"), key.Int(42))
	at := instant(t, fixed)
	for name, f := range map[string]func(){
		"record":       func() { _, _ = p.Record("user:4711") },
		"field":        func() { _, _ = p.Record("user:4711", "note") },
		"entry":        func() { _, _ = p.Entry("status.1:suspended") },
		"pair":         func() { _, _ = p.Entry("status.1:~peu,~n42") },
		"time":         func() { _, _ = p.Entry("seen.1:~t20180207T012613.84Z") },
		"body":         func() { _, _ = s.EntryBody("status", 1, v) },
		"body of time": func() { _, _ = s.EntryBody("status", 1, at) },
		"manifest":     func() { _ = p.Manifest() },
	} {
		require.LessOrEqual(t, testing.AllocsPerRun(200, f), 1.0, name)
	}
}
