package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

// runMain, when set, makes the test binary be the program.
const runMain = "LOCKSTEP_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

const schema = "owner: o\nentity: e\nversion: 1\nid: id\nlifetime: forever\nindexes:\n  tag: {membership: tag}\n"

// program is a process of the program on a server.
func program(t *testing.T, s *redistest.Server, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "schema.yaml")
	require.NoError(t, os.WriteFile(file, []byte(schema), 0o600))
	cmd := exec.Command(self, append([]string{"-s", file}, args...)...)
	cmd.Env = append(os.Environ(), runMain+"=1", "LOCKSTEP_REDIS="+s.URL())
	return cmd
}

func TestTheProgramGivesItsExitCode(t *testing.T) {
	s := redistest.Mini(t)
	cmd := program(t, s, "put")
	cmd.Stdin = bytes.NewReader([]byte(`{"id":"1","tag":"a"}`))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "written 1\n", string(out))
	for want, args := range map[int][]string{0: {"get", "1"}, 1: {"get", "2"}, 2: {"get"}} {
		cmd := program(t, s, args...)
		_ = cmd.Run() // the exit code says it
		require.Equal(t, want, cmd.ProcessState.ExitCode(), "%v", args)
	}
}

func TestASignalEndsALoadThatWaitsForInput(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals there")
	}
	s := redistest.Mini(t)
	cmd := program(t, s, "load", "-")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for i := range 20_000 { // more than a pipe holds: when all is written, the program reads
		_, err := fmt.Fprintf(stdin, "{\"id\":\"%d\",\"tag\":\"a\"}\n", i)
		require.NoError(t, err)
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait() // the exit code says it
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), stderr.String())
	require.Regexp(t, `^error: interrupted (at|before) line \d+: \d+ records loaded`, stderr.String())
}
