package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/quakes"
)

// demoSchema declares the earthquakes of the demonstration; the owner is filled in.
const demoSchema = `owner: %s
entity: quake
version: 1
id: id
lifetime: forever
indexes:
  status: {membership: status}
  net:    {membership: net}
  alert:  {membership: alert}
  source: {membership: sources, split: ","}
`

func newDemoCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show what the library does, on the earthquakes of one week",
		Long: `Load the 1,707 earthquakes of one week, look some up by value, change records and see their index entries move, and show
the keys that all this consists of.

It runs on a server of its own inside the process. With --redis it runs on that server, under an owner of its own with a
random name, and removes every key of its own at the end, also after an error or Ctrl-C. LOCKSTEP_REDIS is not looked at.`,
		Example: s.examples("demo", "demo --redis redis://localhost:6379"),
		Args:    cobra.NoArgs,
		RunE:    s.run(func(ctx context.Context, _ []string) error { return s.demo(ctx) }),
	}
}

// demo is one run of the demonstration.
type demo struct {
	s      *session
	ctx    context.Context
	rdb    redis.UniversalClient
	target target
	quakes store
}

func (s *session) demo(ctx context.Context) (err error) {
	if s.json {
		return errors.New("demo has no --json: it is made for reading")
	}
	d := &demo{s: s, ctx: ctx}
	where := "a server inside this process"
	if s.redis == "" {
		mini := miniredis.NewMiniRedis()
		if err := mini.Start(); err != nil {
			return err
		}
		defer mini.Close()
		d.rdb, err = server{address: "redis://" + mini.Addr(), timeout: s.timeout}.connect(ctx)
	} else {
		where = "the server given"
		d.rdb, err = s.connect(ctx)
	}
	if err != nil {
		return err
	}
	defer d.rdb.Close()

	suffix := make([]byte, 4)
	_, _ = rand.Read(suffix) // never fails
	owner := "lockstep:demo-" + hex.EncodeToString(suffix)
	sc, err := parseSchema("demo.yaml", fmt.Appendf(nil, demoSchema, owner))
	if err != nil {
		return err
	}
	d.target = target{sc.entity, sc}
	d.say("Lockstep on %s, every key under %s", where, sc.entity.Space().Prefix())
	defer func() {
		if cerr := d.cleanUp(); cerr != nil {
			err = errors.Join(err, cerr)
		}
	}()
	return d.run()
}

// run goes through the parts.
func (d *demo) run() error {
	var err error
	d.quakes, err = d.target.on(d.ctx, d.rdb, index.OpenOptions{
		Retry: index.Retry{Budget: d.s.timeout}, AssumeEmpty: true, // the owner is new: nothing to look for
	})
	if err != nil {
		return err
	}
	for _, part := range []func() error{d.declare, d.load, d.lookUp, d.update, d.keys} {
		if err := part(); err != nil {
			return err
		}
		if err := d.s.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) declare() error {
	d.title("1  The declaration, as a schema file")
	d.say("%s", indent(fmt.Sprintf(demoSchema, d.target.Owner())))
	return nil
}

func (d *demo) load() error {
	d.title("2  Load %d earthquakes: each record and its index entries in one step", quakes.Count())
	text := bytes.Join(slices.Collect(quakes.Lines()), []byte("\n"))
	start := time.Now()
	l := &loader{into: d.quakes}
	if err := l.run(d.ctx, newLines(bytes.NewReader(text), maxLine)); err != nil {
		return err
	}
	took := time.Since(start)
	d.say("  loaded %s in %v (%.0f records/s)", plural(l.loaded, "record"), roundTime(took), float64(l.loaded)/took.Seconds())
	return nil
}

func (d *demo) lookUp() error {
	d.title("3  Look up by exact value")
	if err := d.counts("status=automatic", "status=reviewed", "net=ci", "source=us"); err != nil {
		return err
	}
	d.say("")
	n := 0
	d.command("find alert=green --limit 3")
	for e, err := range d.quakes.FindEncoded(d.ctx, "alert", "green") {
		if err != nil {
			return err
		}
		var q struct {
			Place  string
			Mag    json.Number
			Status string
			Time   int64
		}
		if err := json.Unmarshal(e.Bytes, &q); err != nil {
			return err
		}
		d.say("  %-12s M %-4s %s  %-9s  %s", e.ID, q.Mag, time.UnixMilli(q.Time).UTC().Format("2006-01-02 15:04"), q.Status, printable(q.Place))
		if n++; n == 3 {
			break
		}
	}
	return nil
}

func (d *demo) update() error {
	d.title("4  Update: the entries move with the record")
	all := make([][]byte, 0, quakes.Count())
	for line := range quakes.Lines() {
		if changed := reviewed(line); changed != nil {
			all = append(all, changed)
		}
	}
	for _, step := range []struct {
		what    string
		records [][]byte
	}{
		{"one earthquake is reviewed", all[:1]},
		{"then all the others", all},
	} {
		if _, err := d.quakes.PutEncoded(d.ctx, step.records); err != nil {
			return err
		}
		d.say("  %s:", step.what)
		if err := d.counts("status=automatic", "status=reviewed"); err != nil {
			return err
		}
	}
	return nil
}

// reviewed is an automatic record after its review, nil for any other.
func reviewed(line []byte) []byte {
	const before, after = `"status":"automatic"`, `"status":"reviewed"`
	if !strings.Contains(string(line), before) {
		return nil
	}
	return []byte(strings.Replace(string(line), before, after, 1))
}

// counts prints the answers to conditions.
func (d *demo) counts(conditions ...string) error {
	for _, c := range conditions {
		name, value, err := d.target.condition(c)
		if err != nil {
			return err
		}
		n, err := d.quakes.CountOf(d.ctx, name, value)
		if err != nil {
			return err
		}
		d.say("  count %-18s %s", c, d.bold(fmt.Sprintf("%5d", n)))
	}
	return nil
}
