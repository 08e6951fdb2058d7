package ranked_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

// localeDir gives a directory with a locale in which letters order without regard to case, "" where none can be made.
var localeDir = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "locale")
	if err != nil {
		return ""
	}
	if err := exec.Command("localedef", "-i", "en_US", "-f", "UTF-8", filepath.Join(dir, "en_US.UTF-8")).Run(); err != nil {
		_ = os.RemoveAll(dir)
		return ""
	}
	return dir
})

// localized is a redis-server whose Lua compares texts by a locale other than C, where this machine has the means; else a
// plain one, on which the test still says that the order is that of bytes.
func localized(t *testing.T) *redistest.Server {
	t.Helper()
	dir := localeDir()
	if dir == "" {
		return redistest.Redis(t)
	}
	t.Setenv("LOCPATH", dir)
	t.Setenv("LC_ALL", "en_US.UTF-8")
	s := redistest.Redis(t)
	less, err := s.Client(t).Eval(t.Context(), `return ("B" < "a") and 1 or 0`, nil).Int()
	require.NoError(t, err)
	if less != 0 {
		t.Log("the locale does not reach the server: its order is that of bytes")
	}
	return s
}
