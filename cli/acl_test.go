package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/repair"
)

// rule is what acl --json gives.
type rule struct {
	User     string
	Keys     []string
	Commands []string
	Rule     string
}

// grant makes the user of a rule on a server.
func (c *tool) grant(admin redis.UniversalClient, args ...string) rule {
	c.t.Helper()
	var r rule
	out := c.fine(append([]string{"acl", "--json", "--user-password-file", write(c.t, "pw", "secret\n")}, args...)...)
	require.NoError(c.t, json.Unmarshal([]byte(out), &r))
	words := make([]any, 0, 64)
	for word := range strings.FieldsSeq(r.Rule) {
		words = append(words, word)
	}
	require.NoError(c.t, admin.Do(c.t.Context(), words...).Err())
	return r
}

func TestTheACLRuleIsEnoughAndNotMore(t *testing.T) {
	for _, start := range []func(testing.TB, ...string) *redistest.Server{redistest.Redis, redistest.Cluster} {
		s := start(t)
		t.Run(s.Name, func(t *testing.T) {
			admin := s.Client(t)
			cluster := s.Name == redistest.NameCluster
			flags := []string{}
			if cluster {
				flags = append(flags, "--cluster")
			}
			e := rankedAccounts("acme", "account")
			c := &tool{t: t, entities: []index.Declared{e}}
			writer := c.grant(admin, flags...)
			reader := c.grant(admin, append(flags, "--read-only", "--verify")...)
			require.Equal(t, []string{"~acme:account:*"}, writer.Keys)
			require.Equal(t, []string{"%R~acme:account:*"}, reader.Keys)
			require.NoError(t, admin.ConfigResetStat(t.Context()).Err())

			as := func(r rule) redis.UniversalClient {
				return s.Client(t, func(o *redis.UniversalOptions) { o.Username, o.Password = r.User, "secret" })
			}
			ctx := t.Context()
			rdb := as(writer)
			w, err := index.Open(ctx, rdb, e)
			require.NoError(t, err)
			exercise(t, w)
			r, err := index.Open(ctx, as(reader), e, index.OpenOptions{ReadOnly: true})
			require.NoError(t, err)
			query(t, r)
			if cluster {
				// What a redirection and a replica ask for, which one node never does.
				require.NoError(t, rdb.Do(ctx, "asking").Err())
			}

			// Nothing was refused.
			log, err := admin.ACLLog(ctx, 100).Result()
			require.NoError(t, err)
			require.Empty(t, log)

			// Nothing is granted that was not used.
			used := commandStats(t, admin)
			notUsed := slices.DeleteFunc(slices.Clone(writer.Commands), func(name string) bool {
				return used[name] || name == "asking" || name == "readonly"
			})
			require.Empty(t, notUsed, "granted without need: the probe of Open and the calls above use everything that scripts use")

			// Everything else is refused.
			for _, r := range []rule{writer, reader} {
				foreign := as(r)
				for _, args := range [][]any{
					{"get", "acme:accounts:x"}, {"get", "acme:other:{account}:x"}, {"flushall"}, {"config", "get", "*"}, {"keys", "*"},
				} {
					require.ErrorContains(t, foreign.Do(ctx, args...).Err(), "NOPERM", "%s may %v", r.User, args)
				}
			}
			require.ErrorContains(t, as(reader).Do(ctx, "set", "acme:account:x", "1").Err(), "NOPERM")
			_, err = index.Open(ctx, as(reader), e)
			require.ErrorIs(t, err, index.ErrDenied)
		})
	}
}

// exercise calls everything that the library has on a fresh entity type.
func exercise(t *testing.T, c *index.Collection[account]) {
	t.Helper()
	ctx := t.Context()
	many := make([]account, 1200) // more than one page of ids
	for i := range many {
		many[i] = account{ID: fmt.Sprint(i), Status: "new", Seen: int64(i), Email: fmt.Sprintf("%d@x", i)}
	}
	_, err := c.PutMany(ctx, many)
	require.NoError(t, err)
	require.NoError(t, c.Create(ctx, account{ID: "a", Status: "new"}))
	require.ErrorIs(t, c.Put(ctx, account{ID: "b", Email: "1@X"}), index.ErrConflict)
	_, err = c.Update(ctx, "a", func(a *account) error { a.Status = "old"; return nil })
	require.NoError(t, err)
	snap, err := c.Read(ctx, "a")
	require.NoError(t, err)
	_, err = c.Update(ctx, "a", func(*account) error { return nil }, index.IfToken(snap.Token)) // reads before it writes
	require.NoError(t, err)
	require.NoError(t, c.Delete(ctx, "0"))
	_, err = c.DeleteMany(ctx, []string{"2", "3"})
	require.NoError(t, err)
	report, err := repair.Run(ctx, c, repair.Options{})
	require.NoError(t, err)
	require.True(t, report.Clean(), "%+v", report)
	query(t, c)
}

func query(t *testing.T, c *index.Collection[account]) {
	t.Helper()
	ctx := t.Context()
	n, err := c.CountOf(ctx, "status", "new")
	require.NoError(t, err)
	require.EqualValues(t, 1197, n)
	found := 0
	for _, err := range c.FindEncoded(ctx, "status", "new") {
		require.NoError(t, err)
		found++
	}
	require.Equal(t, 1197, found)
	p, err := c.TopEncoded(ctx, index.TopRequest{Index: "seen", N: 20})
	require.NoError(t, err)
	require.Len(t, p.Items, 20)
	report, err := repair.Verify(ctx, c, repair.Options{})
	require.NoError(t, err)
	require.True(t, report.Clean(), "%+v", report)
	_, err = c.Get(ctx, "a")
	require.NoError(t, err)
	_, err = c.GetMany(ctx, []string{"a", "1"})
	require.NoError(t, err)
}

// commandStats are the commands that the server has run since the last reset, those of scripts included.
func commandStats(t *testing.T, rdb redis.UniversalClient) map[string]bool {
	t.Helper()
	info, err := rdb.Info(context.Background(), "commandstats").Result()
	require.NoError(t, err)
	used := map[string]bool{}
	for line := range strings.Lines(info) {
		if name, ok := strings.CutPrefix(line, "cmdstat_"); ok {
			name, _, _ = strings.Cut(name, ":")
			used[name] = true
		}
	}
	return used
}

func TestTheToolWorksUnderTheUserThatItPrints(t *testing.T) {
	for _, start := range []func(testing.TB, ...string) *redistest.Server{redistest.Redis, redistest.Cluster} {
		s := start(t)
		t.Run(s.Name, func(t *testing.T) {
			c := newTool(t, s, quakeSchema)
			flags := []string{}
			if s.Name == redistest.NameCluster {
				flags = append(flags, "--cluster")
			}
			writer := c.grant(s.Client(t), flags...)
			reader := c.grant(s.Client(t), append(flags, "--read-only")...)
			c.env[envPassword] = "secret"
			c.env[envRedis] = "redis://" + writer.User + "@" + s.Addr
			c.fine("load", quakeFile(t, same))
			c.env[envRedis] = "redis://" + reader.User + "@" + s.Addr
			require.Equal(t, "493", c.fine("count", "status=automatic"))
			require.Len(t, sorted(c.fine("find", "net=ci")), 386)
			c.fine("get", "ci37868143")
			c.refused(2, []string{"delete", "ci37868143"}, "may not run a command")
		})
	}
}

func TestAReaderMayOnlyRead(t *testing.T) {
	writes := strings.Fields("set del hset hdel hincrby sadd srem zadd zrem scan eval evalsha")
	reads, all := aclFlags{readOnly: true}.commands(), aclFlags{}.commands()
	for _, c := range writes {
		require.NotContains(t, reads, c)
		require.Contains(t, all, c)
	}
	require.Subset(t, all, reads)
	require.Subset(t, reads, strings.Fields("get mget hmget evalsha_ro sscan smembers scard zmscore type time"))
}

func TestTheACLRuleIsReadable(t *testing.T) {
	c := newTool(t, redistest.Mini(t), quakeSchema)
	a := c.run("acl")
	require.Equal(t, 0, a.code)
	require.True(t, strings.HasPrefix(a.out, "ACL SETUSER quake reset on #SHA256-OF-THE-PASSWORD ~usgs:feed:quake:* +"), a.out)
	require.Equal(t, 1, strings.Count(a.out, "\n"))
	require.Contains(t, a.err, "sha256sum")
	require.NotContains(t, c.run("acl", "--redis6").out, "_ro")
	a = c.run("acl", "--redis6", "--read-only")
	require.Contains(t, a.out, " ~usgs:feed:quake:* ")
	require.Contains(t, a.out, " +evalsha")
	c.refused(2, []string{"acl", "--user", "a b"}, "--user")

	c = &tool{t: t, entities: []index.Declared{accounts("acme", "account"), accounts("acme", "order")}}
	require.Contains(t, c.run("acl", "--user", "billing").out, "SETUSER billing reset on #SHA256-OF-THE-PASSWORD ~acme:account:* ~acme:order:* +")
	require.NotContains(t, c.run("acl", "--entity", "order").out, "account")
}
