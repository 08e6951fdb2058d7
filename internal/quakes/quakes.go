// Package quakes holds the real records that the demonstration and the tests work on: the seismic events of one week, 31
// January to 7 February 2018.
//
// Credit: U.S. Geological Survey, Earthquake Hazards Program, all-events feed. The data is in the public domain. It was
// taken from vega-datasets 3.2.1 and reduced to one flat JSON object a line; the README beside it describes the fields.
package quakes

import (
	_ "embed"
	"iter"
	"strings"
)

//go:embed earthquakes.jsonl
var data string

// Count returns the number of events, which is the number of lines.
func Count() int { return strings.Count(data, "\n") }

// Lines yields the events in the order of the file, latest first as the feed lists them, each as one JSON object without
// its line end. Every yielded slice is a copy of its own: the caller may keep and change it.
func Lines() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range strings.Lines(data) {
			if !yield([]byte(strings.TrimSuffix(line, "\n"))) {
				return
			}
		}
	}
}
