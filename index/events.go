package index

// Events tells the application what happens inside a collection: the only telemetry of the core. Each field is optional
// and is called in the goroutine of the call it is about, so it must be quick and safe for concurrent use.
type Events struct {
	// Notice says something about the set-up that an operator should know, once when a collection is opened.
	Notice func(text string)
	// Retry says that a call is about to be sent again: script, attempts so far, and why.
	Retry func(script string, attempts int, err error)
	// Replan says that a record had other entries than the plan assumed, so that its write took another round trip.
	Replan func(id string)
	// Collected says that a write took along what was left of a record that had expired or vanished.
	Collected func(id string)
	// Vanished says that a query found an id whose record is gone: expired, evicted or removed by hand.
	Vanished func(index, id string)
	// Stale says that a query found a record that no longer has the value asked for. A write between the two steps of a
	// query does that; without a write it is a finding for verify.
	Stale func(index, id string)
}

func (e *Events) notice(text string) {
	if e.Notice != nil {
		e.Notice(text)
	}
}

func (e *Events) replan(id string) {
	if e.Replan != nil {
		e.Replan(id)
	}
}

func (e *Events) collected(id string) {
	if e.Collected != nil {
		e.Collected(id)
	}
}

func (e *Events) vanished(index, id string) {
	if e.Vanished != nil {
		e.Vanished(index, id)
	}
}

func (e *Events) stale(index, id string) {
	if e.Stale != nil {
		e.Stale(index, id)
	}
}
