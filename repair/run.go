package repair

import (
	"context"

	"github.com/lockstep-go/lockstep/index"
)

// Verify holds every index against the records and reports what is wrong. It changes nothing.
func Verify(ctx context.Context, c index.Opened, o Options) (Report, error) {
	panic("TODO")
}

// Run is Verify that fixes what it finds.
func Run(ctx context.Context, c index.Opened, o Options) (Report, error) {
	panic("TODO")
}

// Build makes one index ready.
func Build(ctx context.Context, c index.Opened, name string, o Options) (Report, error) {
	panic("TODO")
}
