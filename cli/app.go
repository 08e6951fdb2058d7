package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/opaque"
)

// App is the command-line tool over a set of entity types. The fields may be changed before Run.
type App struct {
	// Name is how help and examples call the program: lockstep, or with entity types the name of the running binary.
	Name string
	// Stdin, Stdout and Stderr are those of the process by default.
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Getenv reads the environment: os.Getenv by default.
	Getenv func(string) string

	// Opaque gives the options with which the program opens an entity type on an opaque store, for the flag --kv. They must
	// be the ones that it uses itself, Buckets and IDBuckets above all: others are another declaration. The zero Options by
	// default; with a schema file, what the file says.
	Opaque func(index.Declared) opaque.Options

	entities   []index.Declared
	isTerminal func(any) bool
	raceWrites int // of each contender of the demonstration
}

// New makes the tool for the entity types of a program, given as definitions: the tool makes the connection itself. With
// several, the flag --entity picks one. With none, every command takes a schema file.
//
// What is wrong with a declaration is reported by the first command that needs it.
func New(entities ...index.Declared) *App {
	a := &App{
		Name: "lockstep", Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		entities: entities, isTerminal: isTerminal, raceWrites: raceWrites,
	}
	if len(entities) > 0 && len(os.Args) > 0 {
		a.Name = filepath.Base(os.Args[0])
	}
	return a
}

// Run runs one command and gives its exit code, see the package comment. args are those after the name of the program.
// SIGINT, SIGTERM and the end of ctx stop a command cleanly; a second signal ends the process. A read of Stdin that is
// still blocked then is left behind. The log of go-redis is silenced for the process: its lines would mix with the errors.
func (a *App) Run(ctx context.Context, args []string) int {
	silence()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()

	s := &session{app: a, out: bufio.NewWriterSize(a.Stdout, 64<<10)}
	s.outTerminal, s.errTerminal = a.isTerminal(a.Stdout), a.isTerminal(a.Stderr)
	root := newRootCommand(s)
	root.SetArgs(append([]string{}, args...)) // nil would be the arguments of the process
	root.SetIn(a.Stdin)
	root.SetOut(s.out)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	if ferr := s.out.Flush(); err == nil {
		err = ferr
	}
	return s.report(err)
}

// session is one run: the flags, and where output goes.
type session struct {
	app         *App
	out         *bufio.Writer
	outTerminal bool
	errTerminal bool
	started     bool // a command began; before that an error is one of usage

	redis        string
	kv           string
	passwordFile string
	cacert       string
	cert         string
	certKey      string
	timeout      time.Duration
	json         bool
	schemaFile   string
	entity       string
}

func newRootCommand(s *session) *cobra.Command {
	root := &cobra.Command{
		Use:   s.app.Name,
		Short: "Secondary indexes on Redis: load, find, rank, verify and repair",
		Long: `Lockstep keeps secondary indexes on Redis: a write moves a record and all of its index entries in one step.

` + s.sourceHelp() + `

The server is given by --redis or LOCKSTEP_REDIS:
  redis://host:6379/0                          one server, or any node of a cluster
  rediss://host:6379                           the same over TLS
  unix:///run/redis.sock                       a socket
  redis://node1:6379?addr=node2:6379           a cluster, by several nodes
  redis://sentinel:26379?master_name=main      the primary that Sentinel names; &addr= for more sentinels
Its password is best in LOCKSTEP_REDIS_PASSWORD or in a file (--password-file).

A server that only hands bytes back is given by --kv instead: memcache://host:11211, or redis-opaque://host:6379/0 for a
Redis used like one. It keeps membership and unique indexes, for load, get, put, delete, find, count, verify and repair.

Exit codes: 0 fine; 1 not found, refused, in conflict or found damaged; 2 wrong usage or could not run. Those of verify,
repair, build and sweep say more: see their help.`,
		Example: s.examples(
			"demo",
			"load quakes.jsonl",
			"count status=automatic",
			"find status=automatic --limit 3",
			"top recent -n 20",
		),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			text := fmt.Sprintf("unknown command %q", args[0])
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return fmt.Errorf("%s: did you mean %s?", text, strings.Join(near, " or "))
			}
			return fmt.Errorf("%s: see %s --help", text, s.app.Name)
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return s.checkKV(cmd) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2

	f := root.PersistentFlags()
	f.StringVar(&s.redis, "redis", "", "`URL` of the server (default: LOCKSTEP_REDIS)")
	f.StringVar(&s.kv, "kv", "", "`URL` of a store of bytes instead: "+kvForms)
	f.StringVar(&s.passwordFile, "password-file", "", "`FILE` that holds the password of the server (default: LOCKSTEP_REDIS_PASSWORD)")
	f.StringVar(&s.cacert, "cacert", "", "`FILE` of the certificates that a rediss:// server is checked against (default: those of the system)")
	f.StringVar(&s.cert, "cert", "", "`FILE` of the client's certificate for rediss://")
	f.StringVar(&s.certKey, "key", "", "`FILE` of the key that goes with --cert")
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "how long a step waits for a server that does not answer")
	f.BoolVar(&s.json, "json", false, "JSON output, one value a line")
	switch len(s.app.entities) {
	case 0:
		f.StringVarP(&s.schemaFile, "schema", "s", "", "schema `FILE` that declares the records and their indexes")
	case 1:
	default:
		f.StringVar(&s.entity, "entity", "", "entity type to work on: "+strings.Join(entityNames(s.app.entities), ", "))
	}
	root.AddCommand(
		newLoadCommand(s), newGetCommand(s), newPutCommand(s), newDeleteCommand(s), newFindCommand(s), newCountCommand(s),
		newTopCommand(s), newVerifyCommand(s), newRepairCommand(s), newBuildCommand(s), newSweepCommand(s),
		newKeyCommand(s), newACLCommand(s), newDemoCommand(s), newBenchCommand(s),
	)
	return root
}

// sourceHelp says where the declarations come from.
func (s *session) sourceHelp() string {
	switch n := len(s.app.entities); n {
	case 0:
		return "The schema file (-s) declares what the records are and how they are indexed:\n" + indent(schemaExample)
	case 1:
		return "This program works on the entity type " + s.app.entities[0].String() + "."
	default:
		return "The flag --entity picks one of: " + strings.Join(entityNames(s.app.entities), ", ") + "."
	}
}

// examples are command lines as they are typed with this program.
func (s *session) examples(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		name, env := s.app.Name, ""
		switch {
		case strings.HasPrefix(line, "demo") || strings.HasPrefix(line, "bench") || strings.HasPrefix(line, "key "):
		case len(s.app.entities) == 0:
			env = " -s quakes.yaml"
		case len(s.app.entities) > 1:
			env = " --entity " + s.app.entities[0].Name()
		}
		b.WriteString("  " + name + env + " " + line + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// run marks the moment at which usage is right and the work begins.
func (s *session) run(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s.started = true
		return fn(cmd.Context(), args)
	}
}

func indent(text string) string { return prefixed(strings.TrimSuffix(text, "\n"), "  ") }

// prefixed puts a prefix before every line of a text.
func prefixed(text, prefix string) string {
	return prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
}
