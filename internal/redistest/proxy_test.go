package redistest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// impatient is a client that asks once and waits for a tenth of a second.
func impatient(o *redis.UniversalOptions) {
	o.MaxRetries, o.ReadTimeout = -1, 100*time.Millisecond
}

func TestAProxyWithoutFaultsIsNotNoticed(t *testing.T) {
	for _, s := range []*Server{Mini(t), Redis(t)} {
		p := NewProxy(t, s)
		for _, protocol := range []int{2, 3} {
			rdb := p.Client(t, func(o *redis.UniversalOptions) { o.Protocol = protocol })
			ctx := t.Context()
			odd := "a\r\n$3\r\n\x00" + strings.Repeat("x", 10_000)
			require.NoError(t, rdb.Set(ctx, "k", odd, 0).Err())
			require.Equal(t, odd, rdb.Get(ctx, "k").Val())
			require.ErrorIs(t, rdb.Get(ctx, "none").Err(), redis.Nil)
			require.NoError(t, rdb.HSet(ctx, "h", "a", "1", "b", "2").Err())
			require.Equal(t, map[string]string{"a": "1", "b": "2"}, rdb.HGetAll(ctx, "h").Val())
			require.NoError(t, rdb.ZAdd(ctx, "z", redis.Z{Score: 0.5, Member: "m"}).Err())
			require.InDelta(t, 0.5, rdb.ZScore(ctx, "z", "m").Val(), 0)
			require.Error(t, rdb.HGet(ctx, "k", "f").Err())
			nested, err := rdb.Eval(ctx, `return {1, {'two', {}}, false, 'four'}`, nil).Result()
			require.NoError(t, err)
			require.Equal(t, []any{int64(1), []any{"two", []any{}}, nil, "four"}, nested)
			pipe := rdb.Pipeline()
			for n := range 50 {
				pipe.Set(ctx, fmt.Sprint("p", n), n, 0)
			}
			_, err = pipe.Exec(ctx)
			require.NoError(t, err)
			require.Equal(t, "49", rdb.Get(ctx, "p49").Val())
		}
	}
}

func TestEachFaultStrikesBeforeOrAfterTheServerRanTheRequestAsItSays(t *testing.T) {
	s := Redis(t)
	p := NewProxy(t, s)
	direct := s.Client(t)
	for _, c := range []struct {
		name    string
		fault   Fault
		applied bool
		want    string // of the error, "" for none
	}{
		{"pass", Fault{}, true, ""},
		{"cut before", Fault{Kind: CutBefore}, false, "EOF"},
		{"cut after", Fault{Kind: CutAfter}, true, "EOF"},
		{"half-close", Fault{Kind: HalfClose}, true, "EOF"},
		{"drop the reply", Fault{Kind: DropReply}, true, "timeout"},
		{"swallow", Fault{Kind: Swallow}, false, "timeout"},
		{"delay", Fault{Kind: Delay, For: 20 * time.Millisecond}, true, ""},
		{"answer", Fault{Kind: Answer, Text: "BUSY a script is running"}, false, "BUSY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			require.NoError(t, direct.Set(ctx, "n", 0, 0).Err())
			rdb := p.Client(t, impatient)
			require.NoError(t, rdb.Ping(ctx).Err())
			p.Inject([]string{"incr"}, At(2, c.fault))
			require.NoError(t, rdb.Incr(ctx, "n").Err())
			started := time.Now()
			err := rdb.Incr(ctx, "n").Err()
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
			require.GreaterOrEqual(t, time.Since(started), c.fault.For)
			want := "1"
			if c.applied {
				want = "2"
			}
			require.Equal(t, want, direct.Get(ctx, "n").Val(), "at the moment at which the client noticed")
			require.NoError(t, rdb.Incr(ctx, "n").Err(), "one request only")
			requests, faults := p.Seen()
			require.Equal(t, 3, requests, "get and ping do not count")
			if c.fault.Kind != Pass {
				require.Equal(t, 1, faults)
			}
		})
	}
}

func TestTheRequestsOfManyConnectionsAreCountedOnceEach(t *testing.T) {
	s := Redis(t)
	p := NewProxy(t, s)
	p.Inject([]string{"incr"}, Every(3, 5, Fault{Kind: Answer, Text: "TRYAGAIN not now"}))
	rdb := p.Client(t, impatient)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 10 {
				rdb.Incr(context.Background(), "n")
			}
		})
	}
	wg.Wait()
	requests, faults := p.Seen()
	require.Equal(t, 200, requests)
	require.Equal(t, 40, faults, "3, 8, ... 198")
	n, err := s.Client(t).Get(t.Context(), "n").Int()
	require.NoError(t, err)
	require.Equal(t, 160, n)
}

func TestARefusingProxyLooksLikeAServerThatIsGone(t *testing.T) {
	p := NewProxy(t, Mini(t))
	rdb := p.Client(t, impatient)
	require.NoError(t, rdb.Ping(t.Context()).Err())
	p.Refuse(true)
	require.Error(t, rdb.Ping(t.Context()).Err())
	p.Refuse(false)
	require.NoError(t, rdb.Ping(t.Context()).Err())
}

func TestATransactionCountsOnceAndAnAnswerInItsPlaceEndsIt(t *testing.T) {
	s := Redis(t)
	p := NewProxy(t, s)
	ctx := t.Context()
	rdb := p.Client(t, impatient, func(o *redis.UniversalOptions) { o.PoolSize = 1 })
	tx := func() error {
		_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, "n")
			p.Get(ctx, "n")
			return nil
		})
		return err
	}
	require.NoError(t, tx())
	p.Inject(Data, Every(1, 2, Fault{Kind: Answer, Text: "LOADING Redis is loading"}))
	require.ErrorContains(t, tx(), "LOADING")
	require.NoError(t, tx())
	require.ErrorContains(t, rdb.Get(ctx, "n").Err(), "LOADING")
	require.Equal(t, "2", rdb.Get(ctx, "n").Val(), "what was refused did not run")
	requests, faults := p.Seen()
	require.Equal(t, 4, requests)
	require.Equal(t, 2, faults)
}
