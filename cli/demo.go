package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/index"
)

func newDemoCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show what the library does: a race, a week of earthquakes, an incident and its repair",
		Long: `Let sixteen writers race on the same records, by hand and through the library, and count what is wrong afterwards; load the
1,707 earthquakes of one week, look them up by value and in order, and change some; damage the indexes behind the library's
back, find the damage and repair it; and show the keys that all this consists of. Every number is measured in the run.

It runs on a server of its own inside the process. With --redis it runs on that server, under an owner of its own with a
random name, and removes every key of its own at the end, also after an error or Ctrl-C. LOCKSTEP_REDIS is not looked at.`,
		Example: s.examples("demo", "demo --redis redis://localhost:6379"),
		Args:    cobra.NoArgs,
		RunE:    s.run(func(ctx context.Context, _ []string) error { return s.demo(ctx) }),
	}
}

// demo is one run of the demonstration.
type demo struct {
	s     *session
	ctx   context.Context
	owner string

	embedded bool // on a server of its own
	server   server
	rdb      redis.UniversalClient
	target   target
	quakes   index.Opened

	results []raceResult
	planned plannedDamage
}

func (s *session) demo(ctx context.Context) (err error) {
	if s.json {
		return errors.New("demo has no --json: it is made for reading")
	}
	d := &demo{s: s, ctx: ctx, owner: "lockstep:demo-" + randomHex()}
	where := "a server inside this process"
	if s.redis == "" {
		mini := miniredis.NewMiniRedis()
		if err := mini.Start(); err != nil {
			return err
		}
		defer mini.Close()
		d.embedded = true
		d.server = server{address: "redis://" + mini.Addr(), timeout: s.timeout}
	} else {
		where = "the server given"
		if d.server, err = s.server(); err != nil {
			return err
		}
	}
	if d.rdb, err = d.dial(ctx); err != nil {
		return err
	}
	defer d.rdb.Close()

	sc, err := parseSchema("demo.yaml", fmt.Appendf(nil, demoSchema, d.owner))
	if err != nil {
		return err
	}
	d.target = target{sc.entity, sc}
	d.say("Lockstep on %s, every key under %s:", where, d.owner)
	defer func() {
		if cerr := d.cleanUp(); cerr != nil {
			err = errors.Join(err, cerr)
		}
	}()
	return d.run()
}

// randomHex makes the name of an owner that nobody else has.
func randomHex() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// dial makes a connection.
func (d *demo) dial(ctx context.Context) (redis.UniversalClient, error) { return d.server.connect(ctx) }

// run goes through the parts.
func (d *demo) run() error {
	var err error
	for _, part := range []func() error{d.raceAll, d.open, d.load, d.lookUp, d.top, d.update, d.incident, d.keys} {
		if err = part(); err != nil {
			return err
		}
		if err = d.s.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// title begins a part.
func (d *demo) title(format string, args ...any) {
	d.say("\n%s", d.s.bold(fmt.Sprintf(format, args...)))
}

// command shows what one would type for the lines that follow.
func (d *demo) command(text string) { d.say("\n  $ %s %s", d.s.app.Name, text) }

// say prints lines of the demonstration; errors of the output show when it is flushed.
func (d *demo) say(format string, args ...any) { _, _ = fmt.Fprintf(d.s.out, format+"\n", args...) }
