//go:build race

package redistest

// Race says that the test runs under the race detector.
const Race = true
