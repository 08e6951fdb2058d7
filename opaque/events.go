package opaque

import "time"

// Events tells the application what happens inside a collection. Each field is optional and is called in the goroutine of
// the call it is about, so it must be quick and safe for concurrent use.
type Events struct {
	// Retry says that a write met another one and tries again: on the record, or on the list or claim of an index.
	Retry func(op, id, index string)
	// Repaired says that a query or a repair removed a dead entry.
	Repaired func(index, id string)
	// Left says that an entry that nothing needs any more could not be removed after its write had succeeded. It does no
	// harm; a later reader or Run removes it.
	Left func(index, id string, err error)
	// Suspect says that the store has lost data, with the reason.
	Suspect func(reason string)
	// Grown says how long a list has become, after a write to it: entries and bytes.
	Grown func(index string, entries, bytes int)
}

func (e *Events) retry(op, id, index string) {
	if e.Retry != nil {
		e.Retry(op, id, index)
	}
}

func (e *Events) repaired(index, id string) {
	if e.Repaired != nil {
		e.Repaired(index, id)
	}
}

func (e *Events) left(index, id string, err error) {
	if e.Left != nil {
		e.Left(index, id, err)
	}
}

func (e *Events) suspect(reason string) {
	if e.Suspect != nil {
		e.Suspect(reason)
	}
}

func (e *Events) grown(index string, entries, bytes int) {
	if e.Grown != nil {
		e.Grown(index, entries, bytes)
	}
}

// longestPause bounds the doubling of pauses between two attempts.
const longestPause = 16 * time.Millisecond
