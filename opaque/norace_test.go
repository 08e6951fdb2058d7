//go:build !race

package opaque_test

const raceEnabled = false
