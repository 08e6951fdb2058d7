package ranked_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
)

// localized is a redis-server whose Lua compares texts as people do, where this machine can make such a locale; else a
// plain one.
func localized(t *testing.T) *redistest.Server {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("localedef", "-i", "en_US", "-f", "UTF-8", filepath.Join(dir, "en_US.UTF-8")).CombinedOutput(); err != nil {
		t.Logf("no locale but C: %v %s", err, out)
		return redistest.Redis(t)
	}
	t.Setenv("LOCPATH", dir)
	t.Setenv("LC_ALL", "en_US.UTF-8")
	s := redistest.Redis(t)
	less, err := s.Client(t).Eval(t.Context(), `return ("B" < "a") and 1 or 0`, nil).Int()
	require.NoError(t, err)
	if less != 0 {
		t.Log("the locale does not reach the server")
	}
	return s
}

// In C "B" comes before "a", elsewhere after it.
func TestTiesAreOrderedByBytesWhateverTheLocaleOfTheServer(t *testing.T) {
	s := localized(t)
	for _, pair := range [][2]string{{"B", "a"}, {"Z", "_"}, {"_", "a"}, {"z", "é"}, {"\x7f", "\x80"}, {"a", "aB"}, {"a-b", "ab"}} {
		lower, higher := pair[0], pair[1]
		for _, direction := range []struct {
			name          string
			worse, better string
			best          int64
			options       []ranked.Option
		}{
			{"the highest are kept", lower, higher, 10, nil},
			{"the lowest are kept", higher, lower, -10, []ranked.Option{ranked.LowestFirst()}},
		} {
			s.Flush(t)
			by := ranked.New("rank", score[int64], append(direction.options, ranked.Keep(2), ranked.Slack(0))...)
			st := open(t, s, ints, by)
			order := func(n int) index.Order[entry[int64]] {
				if direction.best > 0 {
					return by.Top(n)
				}
				return by.Bottom(n)
			}
			// The worse one of the pair is trimmed, and is the floor; the better one ties with it, and beats it.
			st.put(entry[int64]{ID: "best", Score: direction.best}, entry[int64]{ID: direction.worse}, entry[int64]{ID: direction.better})
			require.Equal(t, []string{"best", direction.better}, st.whole(order(2)), "%s: %q", direction.name, pair)
			// The better one is trimmed too, and raises the floor: what comes back below it proves nothing.
			st.put(entry[int64]{ID: "best2", Score: direction.best})
			require.NoError(t, st.Delete(t.Context(), "best2"))
			st.put(entry[int64]{ID: direction.worse})
			p := st.page(order(2))
			require.Equal(t, []string{"best", direction.worse}, idsOf(p))
			require.False(t, p.Complete, "%s: %q belongs before %q", direction.name, direction.better, direction.worse)
			// A cursor among ties finds its place by bytes as well.
			st.put(entry[int64]{ID: direction.better, Score: 2 * direction.best}, entry[int64]{ID: direction.worse, Score: 2 * direction.best})
			first := st.page(order(1))
			require.Equal(t, []string{direction.better}, idsOf(first), "%s: %q", direction.name, pair)
			require.Equal(t, []string{direction.worse}, idsOf(st.page(order(1).After(first.Next))))
		}
	}
}
