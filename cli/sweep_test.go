package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/repair"
)

func TestSweepCollectsWhatExpiredRecordsHaveLeft(t *testing.T) {
	s := redistest.Redis(t)
	rdb := s.Client(t)
	c := newTool(t, s, strings.Replace(itemSchema, "lifetime: forever", "lifetime: 20ms", 1))
	expired := func() {
		c.fineInput(`{"id":"1","tag":"a","mail":"m"}`+"\n"+`{"id":"2","tag":"b"}`, "load", "-")
		require.Eventually(t, func() bool {
			return rdb.Exists(t.Context(), "shop:item:{item}:1:v1", "shop:item:{item}:2:v1").Val() == 0
		}, 5*time.Second, time.Millisecond)
	}

	expired()
	require.Contains(t, s.Keys(t), "shop:item:{item}:~tag.1:a:v1")
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(c.fine("sweep", "--json")), &got))
	for _, when := range []string{"started", "duration_ns"} {
		require.NotEmpty(t, got[when])
		delete(got, when)
	}
	require.Equal(t, map[string]any{"entity": "shop:item", "records": 2., "expired": 3., "stopped": false, "failed": false}, got)
	require.Equal(t, []string{"shop:item:~~catalog:v1"}, s.Keys(t))
	require.Regexp(t, `^sweep shop:item: 0 expired records, 0 entries collected in \S+$`, c.fine("sweep"))

	expired()
	c.terminal = true
	a := c.run("sweep", "--rate", "100000")
	require.Equal(t, 0, a.code)
	require.Regexp(t, `^sweep shop:item: 2 expired records, 3 entries collected in \S+\n$`, a.out)
	require.Contains(t, a.err, "sweep ", "no progress bar")
	c.terminal = false

	c.refused(2, []string{"sweep", "--rate", "-1"}, "--rate -1 is negative")
	c.env[envRedis] = "redis://127.0.0.1:1"
	c.refused(2, []string{"sweep"}, "cannot reach the server")
}

func TestASweepThatWasStoppedSaysSoInItsExitCode(t *testing.T) {
	r := sweptOf(repair.Report{Entity: "shop:item", Records: 1, Expired: 2, Started: time.Now(), Stopped: true})
	require.Equal(t, repair.ExitStopped, r.code)
	require.Contains(t, r.about, "1 expired record, 2 entries collected")
	require.Contains(t, r.verdict, "stopped")
	require.False(t, sweptOf(repair.Report{}).began)
}
