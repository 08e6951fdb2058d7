package lockstep_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryTestThatTheCasesNameExists keeps the list of cases from promising what was renamed or removed.
func TestEveryTestThatTheCasesNameExists(t *testing.T) {
	known := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			known[string(m[1])] = true
		}
		return err
	}))
	cases, err := os.ReadFile(filepath.Join("docs", "cases.md"))
	require.NoError(t, err)
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(cases), -1)
	require.Greater(t, len(named), 100)
	for _, name := range named {
		require.True(t, known[name], "docs/cases.md names %s, which is no test", name)
	}
}
