package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

func TestTheDemonstrationShowsWhatItSaysAndLeavesNoKeyBehind(t *testing.T) {
	show := func(t *testing.T, out string) {
		t.Helper()
		for _, want := range []string{
			`Load 1707 earthquakes`, `loaded 1707 records in `, `count status=automatic\s+493\n`, `count status=reviewed\s+1214\n`,
			`count net=ci\s+386\n`, `count status=automatic\s+492\n`, `count status=reviewed\s+1215\n`, `count status=automatic\s+0\n`,
			`count status=reviewed\s+1707\n`, `index status\s+set\s+SCARD\s+lockstep:demo-[0-9a-f]{8}:quake:\{quake\}:~status.1:reviewed:v1\s+1707\n`,
			`record\s+string\s+STRLEN`, `manifest\s+hash\s+HLEN\s.*\s1707\n`, `none left under lockstep:demo-`,
		} {
			require.Regexp(t, want, out)
		}
		require.NotContains(t, out, "\x1b", "coloured without a terminal")
	}
	t.Run("embedded", func(t *testing.T) {
		c := &tool{t: t, env: map[string]string{envRedis: "redis://127.0.0.1:1"}}
		start := time.Now()
		show(t, c.fine("demo"))
		require.Less(t, time.Since(start), 15*time.Second)
		c.terminal = true
		require.Contains(t, c.run("demo").out, "\x1b[1;36m")
		c.env["NO_COLOR"] = "1"
		require.NotContains(t, c.run("demo").out, "\x1b")
	})
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		rdb := s.Client(t)
		require.NoError(t, rdb.Set(t.Context(), "lockstep:demo", "somebody else's", 0).Err())
		c := &tool{t: t}
		show(t, c.fine("demo", "--redis", s.URL()))
		require.Equal(t, []string{"lockstep:demo"}, s.Keys(t))
	})
}

// stopWriter ends a context at the first text that holds a mark, as Ctrl-C would at that moment.
type stopWriter struct {
	strings.Builder
	mark string
	stop context.CancelFunc
}

func (w *stopWriter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.mark) {
		w.stop()
	}
	return w.Builder.Write(p)
}

func TestAnInterruptedDemonstrationStillCleansUp(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx, stop := context.WithCancel(t.Context())
		out := &stopWriter{mark: "loaded 1707 records", stop: stop}
		var stderr strings.Builder
		a := New()
		a.Stdout, a.Stderr = out, &stderr
		require.Equal(t, 2, a.Run(ctx, []string{"demo", "--redis", s.URL()}))
		require.Contains(t, stderr.String(), "context canceled")
		require.Contains(t, out.String(), "none left under")
		require.Empty(t, s.Keys(t))
	})
}
