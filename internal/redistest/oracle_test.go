package redistest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

type account struct {
	ID    string
	City  string
	Score string
}

var accounts = Oracle[account]{
	Prefix:  "acme:billing:account:",
	Version: 3,
	Decode: func(raw string) (account, error) {
		var a account
		err := json.Unmarshal([]byte(raw), &a)
		return a, err
	},
	ID: func(a account) string { return a.ID },
	Expect: func(a account) map[string]string {
		return map[string]string{
			"acme:billing:account:{account}:~city.1:" + a.City + ":v3": "",
			"acme:billing:account:{account}:~newest.1:v3":              a.Score,
		}
	},
	RecordKey: func(id string) string { return "acme:billing:account:{account}:" + id + ":v3" },
}

const (
	paris    = "acme:billing:account:{account}:~city.1:paris:v3"
	rome     = "acme:billing:account:{account}:~city.1:rome:v3"
	newest   = "acme:billing:account:{account}:~newest.1:v3"
	manifest = "acme:billing:account:{account}:~~manifest:v3"
	first    = "acme:billing:account:{account}:1:v3"
)

// plant writes two accounts as they should be, and what surrounds them.
func plant(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	ctx := t.Context()
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, first, `{"ID":"1","City":"paris","Score":"10"}`, 0)
		p.Set(ctx, "acme:billing:account:{account}:2:v3", `{"ID":"2","City":"rome","Score":"0.1"}`, 0)
		p.SAdd(ctx, paris, "1")
		p.SAdd(ctx, rome, "2")
		p.ZAdd(ctx, newest, redis.Z{Score: 10, Member: "1"}, redis.Z{Score: 0.1, Member: "2"})
		p.HSet(ctx, manifest, "1", "row", "2", "row")
		p.HSet(ctx, "acme:billing:account:{account}:~~meta:v3", "gen", "1")
		p.ZAdd(ctx, "acme:billing:account:{account}:~~expiry:v3", redis.Z{Score: 1, Member: "1"})
		p.HSet(ctx, "acme:billing:account:{account}:~~floor:v3", "newest", "1")
		p.Set(ctx, "acme:billing:account:{account}:~~probe:v3", "", 0)
		p.HSet(ctx, "acme:billing:account:~~catalog:v3", "gen", "1")
		// Of other versions and entity types, and none of the oracle's business.
		p.SAdd(ctx, "acme:billing:account:{account}:~city.1:paris:v2", "gone")
		p.SAdd(ctx, "acme:billing:accounts:{account}:~city.1:paris:v3", "gone")
		p.Set(ctx, "acme:billing:account", "x", 0)
		return nil
	})
	require.NoError(t, err)
}

func TestTheOracleFindsNothingWrongWithASoundStore(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		rdb := s.Client(t)
		require.Empty(t, accounts.Check(t.Context(), rdb), "an empty store is sound")
		plant(t, rdb)
		t.Cleanup(func() { accounts.Verify(t, rdb) })
		require.Empty(t, accounts.Check(t.Context(), rdb))
	})
}

func TestTheOracleFindsEveryPlantedFault(t *testing.T) {
	ctx := t.Context()
	cases := map[string]struct {
		fault func(rdb redis.UniversalClient) error
		want  []string
	}{
		"missing member": {
			func(rdb redis.UniversalClient) error { return rdb.SRem(ctx, paris, "1").Err() },
			[]string{fmt.Sprintf("missing: %q lacks %q", paris, "1")},
		},
		"missing rank": {
			func(rdb redis.UniversalClient) error { return rdb.ZRem(ctx, newest, "2").Err() },
			[]string{fmt.Sprintf("missing: %q lacks %q", newest, "2")},
		},
		"stale": {
			func(rdb redis.UniversalClient) error { return rdb.SAdd(ctx, rome, "1").Err() },
			[]string{fmt.Sprintf("stale: %q holds %q, whose record does not name it", rome, "1")},
		},
		"stale in a key that no record names": {
			func(rdb redis.UniversalClient) error {
				return rdb.SAdd(ctx, "acme:billing:account:{account}:~old.1:x:v3", "1").Err()
			},
			[]string{`stale: "acme:billing:account:{account}:~old.1:x:v3" holds "1"`},
		},
		"orphan": {
			func(rdb redis.UniversalClient) error { return rdb.ZAdd(ctx, newest, redis.Z{Member: "\x00"}).Err() },
			[]string{fmt.Sprintf("orphan: %q holds %q, which has no record", newest, "\x00")},
		},
		"a record deleted by hand": {
			func(rdb redis.UniversalClient) error { return rdb.Del(ctx, first).Err() },
			[]string{
				`manifest: partition {account} has a row for "1", which has no record in it`,
				fmt.Sprintf("orphan: %q holds %q", paris, "1"),
				fmt.Sprintf("orphan: %q holds %q", newest, "1"),
			},
		},
		"misranked": {
			func(rdb redis.UniversalClient) error { return rdb.ZIncrBy(ctx, newest, 1, "1").Err() },
			[]string{fmt.Sprintf("misranked: %q has %q at 11 instead of 10", newest, "1")},
		},
		"a lost index key": {
			func(rdb redis.UniversalClient) error { return rdb.Del(ctx, paris).Err() },
			[]string{fmt.Sprintf("missing: %q lacks %q", paris, "1")},
		},
		"a SET where a ZSET belongs": {
			func(rdb redis.UniversalClient) error {
				_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.Del(ctx, newest)
					p.SAdd(ctx, newest, "1", "2")
					return nil
				})
				return err
			},
			[]string{
				fmt.Sprintf("kind: %q is a set, %q needs the score %q", newest, "1", "10"),
				fmt.Sprintf("kind: %q is a set, %q needs the score %q", newest, "2", "0.1"),
			},
		},
		"a string in the place of an index": {
			func(rdb redis.UniversalClient) error { return rdb.Set(ctx, paris, "x", 0).Err() },
			[]string{
				fmt.Sprintf("foreign: %q is a string", paris),
				fmt.Sprintf("missing: %q lacks %q", paris, "1"),
			},
		},
		"a lost row": {
			func(rdb redis.UniversalClient) error { return rdb.HDel(ctx, manifest, "2").Err() },
			[]string{`manifest: partition {account} has no row for the record "2"`},
		},
		"a row too many": {
			func(rdb redis.UniversalClient) error { return rdb.HSet(ctx, manifest, "9", "row").Err() },
			[]string{`manifest: partition {account} has a row for "9", which has no record in it`},
		},
		"a row in another partition": {
			func(rdb redis.UniversalClient) error {
				return rdb.HSet(ctx, "acme:billing:account:{b}:~~manifest:v3", "1", "row").Err()
			},
			[]string{`manifest: partition {b} has a row for "1", which has no record in it`},
		},
		"a record under another key": {
			func(rdb redis.UniversalClient) error {
				return rdb.Set(ctx, "acme:billing:account:{b}:1:v3", `{"ID":"1","City":"paris","Score":"10"}`, 0).Err()
			},
			[]string{`misplaced: "acme:billing:account:{b}:1:v3" holds the record "1", whose key is ` + fmt.Sprintf("%q", first)},
		},
		"a record that does not decode": {
			func(rdb redis.UniversalClient) error {
				return rdb.Set(ctx, "acme:billing:account:{account}:3:v3", "not JSON", 0).Err()
			},
			[]string{`undecodable: "acme:billing:account:{account}:3:v3"`},
		},
		"keys that the layout does not know": {
			func(rdb redis.UniversalClient) error {
				for _, rest := range []string{"{a}:~~new:v3", "{a}:x", "{a}:x:v3x", "noTag:1:v3", "{}:1:v3", "{a}::v3", "{a:1:v3"} {
					if err := rdb.Set(ctx, "acme:billing:account:"+rest, "x", 0).Err(); err != nil {
						return err
					}
				}
				return nil
			},
			slicesOf(7, "foreign: "),
		},
	}
	Each(t, func(t *testing.T, s *Server) {
		rdb := s.Client(t)
		for name, c := range cases {
			s.Flush(t)
			plant(t, rdb)
			require.NoError(t, c.fault(rdb), name)
			findings := accounts.Check(ctx, rdb)
			require.Len(t, findings, len(c.want), "%s: %q", name, findings)
			for _, want := range c.want {
				require.Contains(t, strings.Join(findings, "\n"), want, name)
			}
		}
		out := record(t, func(tb testing.TB) { accounts.Verify(tb, rdb) })
		require.True(t, out.failed)
		s.Kill()
		findings := accounts.Check(ctx, rdb)
		require.Len(t, findings, 1)
		require.Contains(t, findings[0], "unreadable: ")
	})
}

func slicesOf(n int, s string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}
