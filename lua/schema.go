package lua

import (
	"context"
	"fmt"
	"strconv"
)

// Start is the state in which the indexes of a partition without meta begin.
type Start string

// The states of an index in a partition.
const (
	Ready    Start = "ready"    // whole: queries are answered
	Building Start = "building" // writes maintain it, but older records may be missing
)

// IndexDefinition is what the catalog needs to know of one index.
type IndexDefinition struct{ Name, Fingerprint string }

// RegisterCall presents a declaration to the catalog.
type RegisterCall struct {
	Catalog     string
	Fingerprint string
	Text        string
	Start       Start // what to do without a catalog: "" answers New, else create it with this start
	Supersede   bool  // become the newest generation even if the fingerprint is known
	Indexes     []IndexDefinition
}

// Registration is what the catalog assigned.
type Registration struct {
	New        bool // there is no catalog, and Start was ""
	Generation int64
	Start      Start
	Planted    bool  // the partitions of a fixed placement exist already
	Indexes    []int // generation of each index's definition, aligned with the call
}

// Register assigns generations. It writes only what the catalog does not know yet.
func (r *Runner) Register(ctx context.Context, c RegisterCall) (Registration, error) {
	supersede := ""
	if c.Supersede {
		supersede = "1"
	}
	args := []any{c.Fingerprint, c.Text, string(c.Start), supersede}
	for _, ix := range c.Indexes {
		args = append(args, ix.Name, ix.Fingerprint)
	}
	keys := []string{c.Catalog}
	list, err := r.run(ctx, registerScript, keys, fixed(args))
	if err != nil {
		return Registration{}, err
	}
	rep := reply{registerScript.name, list, keys}
	if rep.text(0) == "new" {
		return Registration{New: true}, nil
	}
	if err := rep.refusal(0); err != nil {
		return Registration{}, err
	}
	out := Registration{Generation: rep.number(1), Start: Start(rep.text(2)), Planted: rep.text(3) == "1"}
	for i := range c.Indexes {
		out.Indexes = append(out.Indexes, int(rep.number(4+i)))
	}
	return out, nil
}

// Catalog reads the registration of a declaration without writing, for a client that may not write. It is New where
// the catalog or the fingerprint is unknown.
func (r *Runner) Catalog(ctx context.Context, c RegisterCall) (Registration, error) {
	fields := []string{"schema:" + c.Fingerprint, "start", "planted"}
	for _, ix := range c.Indexes {
		fields = append(fields, "index:"+ix.Name+":"+ix.Fingerprint)
	}
	args := []any{"hmget", c.Catalog}
	for _, f := range fields {
		args = append(args, f)
	}
	values, err := r.list(ctx, args)
	if err != nil {
		return Registration{}, fmt.Errorf("lockstep: catalog %q: %w", c.Catalog, err)
	}
	rep := reply{"catalog", values, nil}
	if rep.text(0) == "" {
		return Registration{New: true}, nil
	}
	out := Registration{Generation: rep.number(0), Start: Start(rep.text(1)), Planted: rep.text(2) == "1"}
	for i := range c.Indexes {
		out.Indexes = append(out.Indexes, int(rep.number(3+i)))
	}
	return out, nil
}

// Planted notes in the catalog that the partitions of a fixed placement exist: one without meta has lost it from now on.
func (r *Runner) Planted(ctx context.Context, catalog string) error {
	return r.note(ctx, catalog, "hset", "planted", "1")
}

// note sends one write of the catalog that may be made any number of times.
func (r *Runner) note(ctx context.Context, catalog, command string, args ...any) error {
	all := append([]any{command, catalog}, args...)
	_, err := r.repeat(ctx, command, command, true, func(bool) (any, error) { return r.process(ctx, all) })
	if err != nil {
		return fmt.Errorf("lockstep: catalog %q: %w", catalog, err)
	}
	return nil
}

// Enter tells a partition which indexes the caller's generation maintains; start is their state if it has no meta, and
// nonce becomes its epoch then. It gives the epoch: the name of this life of the partition, in which its write counter
// only grows. Errors: *SchemaError, *KeyTypeError.
func (r *Runner) Enter(
	ctx context.Context, meta, manifest string, generation int64, start Start, nonce string, states []string,
) (epoch string, err error) {
	args := []any{strconv.FormatInt(generation, 10), string(start), nonce}
	for _, s := range states {
		args = append(args, s)
	}
	keys := []string{meta, manifest}
	list, err := r.run(ctx, enterScript, keys, fixed(args))
	if err != nil {
		return "", err
	}
	rep := reply{enterScript.name, list, keys}
	return rep.text(1), rep.refusal(generation)
}

// Probe tries every command of the scripts on a scratch key. ErrDenied names the first that the user may not run.
func (r *Runner) Probe(ctx context.Context, scratch string) error {
	list, err := r.run(ctx, probeScript, []string{scratch}, fixed(nil))
	if err != nil {
		return err
	}
	rep := reply{probeScript.name, list, nil}
	if rep.text(0) == "denied" {
		_, cause := judgeReply(fmt.Errorf("%s", rep.text(2)), rep.text(2))
		return fmt.Errorf("lockstep: command %s: %w", rep.text(1), cause)
	}
	return rep.refusal(0)
}
