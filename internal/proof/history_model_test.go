package proof

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// The histories: few ids and few unique values, so that callers meet.
const (
	historyIDs   = 3
	historyCodes = 2
)

// outcome is how a call of a history ended.
type outcome string

const (
	done     outcome = "done"
	absent   outcome = "not found"
	present  outcome = "exists"
	taken    outcome = "conflict"
	unsure   outcome = "unknown" // applied or not
	unsent   outcome = "not sent"
	noAnswer outcome = "no answer" // of a read
)

// asked is the input of one call: stamp and code are the state to write, or code the value to look for.
type asked struct {
	kind            kind
	id, stamp, code int
}

// told is its output: what was read, for an update what it was made from.
type told struct {
	outcome         outcome
	id, stamp, code int
}

// row is one record of the state of a history. stamp 0 is none, code 0 no unique value.
type row struct{ stamp, code int }

// rows is the state: all records at once, because a unique value belongs to all of them.
type rows [historyIDs]row

func (s rows) holder(code int) int {
	for id, r := range s {
		if code != 0 && r.stamp != 0 && r.code == code {
			return id
		}
	}
	return -1
}

// with is the state after a write, and whether the write was legal.
func (s rows) with(in asked) (rows, bool) {
	if h := s.holder(in.code); h >= 0 && h != in.id {
		return s, false
	}
	s[in.id] = row{in.stamp, in.code}
	return s, true
}

// linear says which states a call can lead to, none if the answer is wrong in that state. An unknown outcome leads to both.
var linear = porcupine.NondeterministicModel{
	Init: func() []any { return []any{rows{}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(rows), input.(asked), output.(told)
		now := s[in.id]
		next, applies := s, false
		switch in.kind {
		case put:
			next, applies = s.with(in)
		case create:
			if now.stamp == 0 {
				next, applies = s.with(in)
			}
		case replace:
			if now.stamp != 0 {
				next, applies = s.with(in)
			}
		case update:
			if now.stamp != 0 && now.stamp == out.stamp && now.code == out.code {
				next, applies = s.with(in)
			}
		case remove:
			next[in.id], applies = row{}, true
		}
		legal := false
		switch out.outcome {
		case done:
			switch in.kind {
			case get:
				legal = now.stamp != 0 && now == row{out.stamp, out.code}
			case one:
				legal = s.holder(in.code) == out.id && s[out.id].stamp == out.stamp
			default:
				if !applies {
					return nil
				}
				return []any{next}
			}
		case absent:
			legal = now.stamp == 0
			if in.kind == one {
				legal = s.holder(in.code) < 0
			}
		case present:
			legal = now.stamp != 0
		case taken:
			h := s.holder(in.code)
			legal = h >= 0 && h != in.id
		case unsent, noAnswer:
			legal = true
		case unsure:
			if applies {
				return []any{s, next}
			}
			legal = true
		}
		if !legal {
			return nil
		}
		return []any{s}
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string {
		in, out := input.(asked), output.(told)
		return fmt.Sprintf("%s i%d #%d k%d -> %s i%d #%d k%d", in.kind, in.id, in.stamp, in.code, out.outcome, out.id, out.stamp, out.code)
	},
}
