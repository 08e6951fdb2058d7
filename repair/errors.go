package repair

import "errors"

// What ends a pass before its time, beside the errors of package index and of the context.
var (
	// ErrActive says that another Run or Build has taken the building of the indexes over. It goes on; this one has stopped.
	ErrActive = errors.New("lockstep: another repair run is active")
	// ErrUnsteady says that the store kept losing writes of the build, as with failovers, so that nothing became ready.
	ErrUnsteady = errors.New("lockstep: the store has lost writes of the build again and again")
	// ErrOptions reports options that make no sense.
	ErrOptions = errors.New("lockstep: wrong repair options")
)
