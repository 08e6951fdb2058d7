package repair_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/ranked"
	"github.com/lockstep-go/lockstep/repair"
)

func TestStat(b *testing.T) {
	n := 100000
	s := redistest.Redis(b)
	rdb := s.Client(b)
	ctx := context.Background()
	c, err := index.Open(ctx, rdb, define(index.Forever, membership.New("color", func(i item) string { return i.Color }),
		ranked.New("weight", func(i item) float64 { return i.Weight })))
	require.NoError(b, err)
	recs := make([]item, n)
	for i := range recs {
		recs[i] = numbered(i)
		recs[i].Note = "0123456789012345678901234567890123456789012345678901234567890123456789"
	}
	_, err = c.PutMany(ctx, recs)
	require.NoError(b, err)
	rdb.ConfigResetStat(ctx)
	last := repair.Phase("")
	t0 := time.Now()
	rep, err := repair.Verify(ctx, c, repair.Options{Progress: func(p repair.Progress) {
		if p.Phase != last || p.Done == p.Total {
			b.Log(p.Phase, p.Done, p.Total, time.Since(t0))
			last = p.Phase
		}
	}})
	require.NoError(b, err)
	b.Log(rep.Duration)
	b.Log(rdb.Info(ctx, "commandstats", "cpu").Val())
}
