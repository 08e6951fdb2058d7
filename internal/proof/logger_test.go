package proof

import (
	"context"
	"log"
)

// quiet is a logger of the client that says nothing.
type quiet struct{ *log.Logger }

func (quiet) Printf(context.Context, string, ...any) {}
