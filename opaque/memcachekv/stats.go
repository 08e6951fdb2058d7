package memcachekv

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/opaque"
)

// Limits implements opaque.KV. The first call asks the server for its item size, unless Options.MaxItem says it.
func (s *Store) Limits(ctx context.Context) (opaque.Limits, error) {
	size := s.item.Load()
	if size == 0 {
		stats, err := s.stats(ctx, "stats settings")
		if err != nil {
			return opaque.Limits{}, err
		}
		if size, err = strconv.ParseInt(stats["item_size_max"], 10, 64); err != nil || size <= itemOverhead {
			return opaque.Limits{}, fmt.Errorf("%w: item_size_max is %q", opaque.ErrUnavailable, stats["item_size_max"])
		}
		s.item.Store(size)
	}
	return opaque.Limits{
		Keys: key.Memcached, MaxValue: int(max(1, size-itemOverhead)), MinLifetime: minLifetime,
	}, nil
}

// Life implements opaque.Witness, from "stats": a run is a process id. Where a restart gives the same one, as in a
// container, the missing descriptor tells. One round trip.
func (s *Store) Life(ctx context.Context) (life opaque.Life, err error) {
	stats, err := s.stats(ctx, "stats")
	if err != nil {
		return life, err
	}
	number := func(name string) uint64 {
		n, nerr := strconv.ParseUint(stats[name], 10, 64)
		if nerr != nil && err == nil {
			err = fmt.Errorf("%w: %s is %q", opaque.ErrUnavailable, name, stats[name])
		}
		return n
	}
	life.Run = stats["pid"]
	life.Evictions = number("evictions")
	life.Flushes = number("cmd_flush")
	return life, err
}

// stats asks for statistics by name.
func (s *Store) stats(ctx context.Context, command string) (map[string]string, error) {
	out := map[string]string{}
	err := s.read(ctx, []byte(command+"\r\n"), func(r *bufio.Reader, _ int, _ uint64) error {
		clear(out)
		for {
			line, err := readLine(r)
			if err != nil {
				return err
			}
			if line == "END" {
				return nil
			}
			words := strings.SplitN(line, " ", 3)
			if len(words) != 3 || words[0] != "STAT" {
				return fmt.Errorf("%w: %.80q to stats", errBroken, line)
			}
			out[words[1]] = words[2]
		}
	})
	return out, err
}

// How long Keys waits for a crawler that somebody else keeps busy, in steps.
const (
	crawlerWait = 2 * time.Second
	crawlerStep = 10 * time.Millisecond
)

// Keys implements opaque.Lister with "lru_crawler metadump", which walks the memory of the server: it misses keys that move
// meanwhile. One walk goes on at a time; a server whose crawler stays busy for two seconds, or is off, gives none.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		keys, busy, err := s.dump(ctx, prefix)
		for begin := time.Now(); busy && err == nil && time.Since(begin) < crawlerWait; {
			select {
			case <-ctx.Done():
				err = context.Cause(ctx)
			case <-time.After(crawlerStep):
				keys, busy, err = s.dump(ctx, prefix)
			}
		}
		if err != nil {
			yield("", err)
			return
		}
		for _, k := range keys {
			if !yield(k, nil) {
				return
			}
		}
	}
}

// dump asks the crawler once for the keys with a prefix.
func (s *Store) dump(ctx context.Context, prefix string) (keys []string, busy bool, err error) {
	err = s.read(ctx, []byte("lru_crawler metadump all\r\n"), func(r *bufio.Reader, _ int, _ uint64) error {
		keys, busy = keys[:0], false
		for {
			line, err := r.ReadString('\n') // unlike all others, these lines end without a carriage return
			line = strings.TrimRight(line, "\r\n")
			switch {
			case err != nil:
				return err
			case strings.HasPrefix(line, "BUSY"):
				busy = true
				return nil
			case line == "END", strings.HasPrefix(line, "ERROR"), strings.HasPrefix(line, "CLIENT_ERROR"):
				return nil
			}
			word, _, _ := strings.Cut(line, " ")
			text, ok := strings.CutPrefix(word, "key=")
			if !ok {
				return fmt.Errorf("%w: %.80q to metadump", errBroken, line)
			}
			k, err := url.PathUnescape(text)
			if err == nil && strings.HasPrefix(k, prefix) {
				keys = append(keys, k)
			}
		}
	})
	return keys, busy, err
}
