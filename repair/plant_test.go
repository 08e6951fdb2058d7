package repair_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/repair"
)

// planter damages a healthy store behind the library's back, and remembers what it did.
type planter struct {
	pipe  redis.Pipeliner
	want  map[string]repair.Kind // key and id
	parts map[string][2]string
}

func (p *planter) note(k repair.Kind, key, id string) {
	name := key + " " + id
	if _, twice := p.want[name]; twice {
		panic("planted twice: " + name)
	}
	p.want[name], p.parts[name] = k, [2]string{key, id}
}

// plant makes n of each kind of damage. Each record is damaged at most once.
func plant(t testing.TB, rdb redis.UniversalClient, n int) *planter {
	t.Helper()
	ctx := context.Background()
	p := &planter{pipe: rdb.Pipeline(), want: map[string]repair.Kind{}, parts: map[string][2]string{}}
	next := 0
	take := func() item { next++; return numbered(3*next + 1) }
	held := func(i int) string { return entryKey("code.1:" + numbered(3*i).Code) } // a unique value in good hands
	for i := range n {
		// missing
		rec := take()
		switch i % 5 {
		case 0:
			p.pipe.SRem(ctx, entryKey("color.1:"+rec.Color), rec.ID)
			p.note(repair.Missing, entryKey("color.1:"+rec.Color), rec.ID)
		case 1:
			p.pipe.SRem(ctx, entryKey("tag.1:"+rec.Tags[1]), rec.ID)
			p.note(repair.Missing, entryKey("tag.1:"+rec.Tags[1]), rec.ID)
		case 2:
			p.pipe.ZRem(ctx, entryKey("weight.1"), rec.ID)
			p.note(repair.Missing, entryKey("weight.1"), rec.ID)
		case 3:
			p.pipe.ZRem(ctx, entryKey("serial.1"), serialOf(rec.Serial)+rec.ID)
			p.note(repair.Missing, entryKey("serial.1"), rec.ID)
		case 4:
			p.pipe.SRem(ctx, entryKey("code.1:"+rec.Code), rec.ID)
			p.note(repair.Missing, entryKey("code.1:"+rec.Code), rec.ID)
		}
		// stale
		rec = take()
		switch i % 4 {
		case 0:
			p.pipe.SAdd(ctx, entryKey("color.1:elsewhere"), rec.ID)
			p.note(repair.Stale, entryKey("color.1:elsewhere"), rec.ID)
		case 1:
			k := entryKey(fmt.Sprintf("tag.1:ghost%d", i))
			p.pipe.SAdd(ctx, k, rec.ID)
			p.note(repair.Stale, k, rec.ID)
		case 2:
			p.pipe.ZAdd(ctx, entryKey("serial.1"), redis.Z{Member: serialOf(rec.Serial+1_000_000) + rec.ID})
			p.note(repair.Stale, entryKey("serial.1"), rec.ID)
		case 3:
			p.pipe.SAdd(ctx, held(i), rec.ID)
			p.note(repair.Stale, held(i), rec.ID)
		}
		// orphan
		id := fmt.Sprintf("ghost{%d}", i)
		switch i % 4 {
		case 0:
			p.pipe.SAdd(ctx, entryKey("color.1:c1"), id)
			p.note(repair.Orphan, entryKey("color.1:c1"), id)
		case 1:
			p.pipe.ZAdd(ctx, entryKey("weight.1"), redis.Z{Score: 5, Member: id})
			p.note(repair.Orphan, entryKey("weight.1"), id)
		case 2:
			p.pipe.ZAdd(ctx, entryKey("serial.1"), redis.Z{Member: serialOf(7) + id})
			p.note(repair.Orphan, entryKey("serial.1"), id)
		case 3:
			p.pipe.SAdd(ctx, held(i), id)
			p.note(repair.Orphan, held(i), id)
		}
		// misranked
		rec = take()
		if i%2 == 0 {
			p.pipe.ZAdd(ctx, entryKey("weight.1"), redis.Z{Score: rec.Weight + 0.5, Member: rec.ID})
			p.note(repair.Misranked, entryKey("weight.1"), rec.ID)
		} else {
			p.pipe.ZAdd(ctx, entryKey("serial.1"), redis.Z{Score: 3, Member: serialOf(rec.Serial) + rec.ID})
			p.note(repair.Misranked, entryKey("serial.1"), rec.ID)
		}
		// undecodable
		rec = take()
		p.pipe.Set(ctx, record(rec.ID), []string{"{", "", "[]", `{"ID":7}`}[i%4], redis.KeepTTL)
		p.note(repair.Undecodable, record(rec.ID), rec.ID)
		// foreign
		k := entryKey(fmt.Sprintf("color.1:foreign%d", i))
		switch i % 6 {
		case 0:
			p.pipe.Set(ctx, k, "x", 0)
		case 1:
			p.pipe.ZAdd(ctx, k, redis.Z{Member: "x"})
		case 2:
			k = entryKey(fmt.Sprintf("nobody.1:%d", i))
			p.pipe.SAdd(ctx, k, "x")
		case 3:
			k = prefix + fmt.Sprintf("~~stranger%d:v1", i)
			p.pipe.Set(ctx, k, "x", 0)
		case 4:
			k = fmt.Sprintf("acme:item:free form %d", i)
			p.pipe.Set(ctx, k, "x", 0)
		case 5:
			k = record(fmt.Sprintf("hash%d", i))
			p.pipe.HSet(ctx, k, "f", "x")
			p.note(repair.Foreign, k, fmt.Sprintf("hash%d", i))
			continue
		}
		p.note(repair.Foreign, k, "")
	}
	_, err := p.pipe.Exec(ctx)
	require.NoError(t, err)
	return p
}

// got is what a report found, in the words of a planter.
func got(t testing.TB, rep repair.Report) map[string]repair.Kind {
	t.Helper()
	out := map[string]repair.Kind{}
	for _, f := range rep.Findings {
		name := f.Key + " " + f.ID
		require.NotContains(t, out, name, "reported twice")
		out[name] = f.Kind
	}
	return out
}

func TestEveryKindOfDamageIsReportedOnceAndRepaired(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		records, damage := s.Size(redistest.Full(20_000, 1500), 600), s.Size(redistest.Full(500, 36), 12)
		fill(t, c, records)
		exec(t, rdb, "set", "other:key", "x", "px", "10000000")
		exec(t, rdb, "pexpire", record("i00000"), "10000000")
		healthy := redistest.Snapshot(t, rdb)
		p := plant(t, rdb, damage)
		foreign := func() (out []string) {
			for name, kind := range p.want {
				if k, id := p.parts[name][0], p.parts[name][1]; kind == repair.Foreign || kind == repair.Undecodable {
					out = append(out, fmt.Sprint(k, " ", id, " ", rdb.Type(ctx, k).Val(), " ", rdb.Get(ctx, k).Val()))
				}
			}
			slices.Sort(out)
			return out
		}
		planted := foreign()

		rep, err := repair.Verify(ctx, c, repair.Options{MaxFindings: 10 * damage})
		require.NoError(t, err)
		require.Equal(t, p.want, got(t, rep))
		for kind, n := range map[repair.Kind]int64{
			repair.Missing: rep.Missing, repair.Stale: rep.Stale, repair.Orphan: rep.Orphan, repair.Misranked: rep.Misranked,
			repair.Undecodable: rep.Undecodable, repair.Foreign: rep.Foreign,
		} {
			require.EqualValues(t, damage, n, kind)
		}
		require.EqualValues(t, records, rep.Records)
		require.EqualValues(t, 6*(records-damage), rep.Entries)
		require.Zero(t, rep.Fixed+rep.Skipped+rep.Rows+rep.Expired)
		require.Equal(t, repair.ExitFindings, rep.ExitCode())

		rep, err = repair.Run(ctx, c, repair.Options{MaxFindings: 10 * damage})
		require.NoError(t, err)
		require.Equal(t, p.want, got(t, rep))
		require.EqualValues(t, 4*damage, rep.Fixed)
		require.Equal(t, repair.ExitFindings, rep.ExitCode(), "what is never touched is left")

		rep, err = repair.Verify(ctx, c, repair.Options{MaxFindings: 10 * damage})
		require.NoError(t, err)
		kinds := map[repair.Kind]int{}
		for _, k := range got(t, rep) {
			kinds[k]++
		}
		require.Equal(t, map[repair.Kind]int{repair.Undecodable: damage, repair.Foreign: damage}, kinds)

		// Beside the damage that stays, the store is what it was.
		require.Equal(t, planted, foreign())
		after := redistest.Snapshot(t, rdb)
		for name, kind := range p.want {
			if kind == repair.Foreign || kind == repair.Undecodable {
				delete(after, p.parts[name][0])
				delete(healthy, p.parts[name][0])
			}
		}
		sameBut(t, healthy, after)
	})
}

// sameBut compares two snapshots but for the write ids of rows and the counters of meta.
func sameBut(t testing.TB, before, after map[string]redistest.Entry) {
	t.Helper()
	for _, s := range []map[string]redistest.Entry{before, after} {
		for k, e := range s {
			switch k {
			case meta:
				e.Elements = maps.Clone(e.Elements)
				delete(e.Elements, "seq")
				delete(e.Elements, "dels")
			case manifest:
				e.Elements = maps.Clone(e.Elements)
				for id, row := range e.Elements {
					_, entries, _ := strings.Cut(row[8:], "\n")
					e.Elements[id] = entries
				}
			}
			s[k] = e
		}
	}
	diff := redistest.Diff(before, after)
	slices.Sort(diff)
	require.Empty(t, diff)
}
