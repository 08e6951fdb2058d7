// Package primaries goes over the servers that hold the keys of a client.
package primaries

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Each calls fn for every primary of a cluster, or once for a single server, one after another. fn's first error is
// returned.
func Each(ctx context.Context, rdb redis.UniversalClient, fn func(context.Context, redis.Cmdable) error) error {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return fn(ctx, rdb)
	}
	var one sync.Mutex
	return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		one.Lock()
		defer one.Unlock()
		return fn(ctx, node)
	})
}
