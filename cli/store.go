package cli

import (
	"context"
	"iter"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/repair"
)

// records is what keeps records under their values: index.Opened and *opaque.Store are.
type records interface {
	Inspect(raw []byte) (id string, err error)
	PutEncoded(ctx context.Context, raw [][]byte) ([]index.Outcome, error)
	GetEncoded(ctx context.Context, ids []string) ([]index.Result[[]byte], error)
	FindEncoded(ctx context.Context, name, text string) iter.Seq2[index.Encoded, error]
	FindIDs(ctx context.Context, name, text string) iter.Seq2[string, error]
	CountOf(ctx context.Context, name, text string) (int64, error)
	DeleteMany(ctx context.Context, ids []string) ([]index.Outcome, error)
}

// store is what a command works on that takes any of them.
type store interface {
	records
	// batch is how many records are best put at once.
	batch() int
	verify(context.Context, passFlags, *phases) (passReport, error)
	repair(context.Context, passFlags, *phases) (passReport, error)
}

// indexed is a store on Redis, with every kind of index.
type indexed struct{ index.Opened }

func (indexed) batch() int { return loadBatch }

func (o indexed) verify(ctx context.Context, f passFlags, bar *phases) (passReport, error) {
	return o.pass(repair.Verify, reportOf)(ctx, f, bar)
}

func (o indexed) repair(ctx context.Context, f passFlags, bar *phases) (passReport, error) {
	return o.pass(repair.Run, reportOf)(ctx, f, bar)
}

// repairPass is one of the passes of package repair.
type repairPass func(context.Context, index.Opened, repair.Options) (repair.Report, error)

// pass makes a pass of this store.
func (o indexed) pass(run repairPass, report func(repair.Report) passReport) pass {
	return func(ctx context.Context, f passFlags, bar *phases) (passReport, error) {
		options := repair.Options{Rate: f.rate, MaxFindings: f.findings, Progress: bar.at}
		if f.findings == 0 {
			options.MaxFindings = -1
		}
		r, err := run(ctx, o.Opened, options)
		return report(r), err
	}
}
