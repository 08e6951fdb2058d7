package index

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/primaries"
	"github.com/lockstep-go/lockstep/lua"
)

// checkEviction reports a server that may evict keys without a lifetime when its memory is full: index keys have none, and
// an index that lost one gives short answers. A server that does not tell its policy is not asked further.
func (c *Collection[T]) checkEviction(ctx context.Context, refuse bool) error {
	return primaries.Each(ctx, c.rdb, func(ctx context.Context, node redis.Cmdable) error {
		info, err := lua.Call(ctx, func() (string, error) { return node.Info(ctx, "memory").Result() })
		if err != nil {
			return nil //nolint:nilerr // no permission, or no such command: the check is a courtesy
		}
		policy, limit := infoField(info, "maxmemory_policy"), infoField(info, "maxmemory")
		if !strings.HasPrefix(policy, "allkeys-") || limit == "" || limit == "0" {
			return nil
		}
		text := fmt.Sprintf("maxmemory-policy %s evicts index keys when the memory is full: use noeviction or a volatile policy", policy)
		if refuse {
			return fmt.Errorf("%w: %s", ErrEviction, text)
		}
		c.events.notice(c.entity.String() + ": " + text)
		return nil
	})
}

// infoField is the value of a field in the reply of INFO, "" without it.
func infoField(info, field string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
