package configurator

import "time"

// Outcome is how a call ends: one of the types below. A chain knows only Done and Failed, and refuses the others.
type Outcome interface{ isOutcome() }

// Done: the handler's work is complete.
type Done struct{}

// Again: enter the handler again with the requests' results; after this time, or at once where it is zero.
type Again struct{ After time.Duration }

// Wait: leave memory, and enter the handler again at the first of these.
type Wait struct {
	// After is a time. Zero is none, not one that is over at once: then only Signals and Objects count. To be entered at once, end with
	// Again.
	After time.Duration
	// Signals are their names.
	Signals []string
	// Objects are those whose change is waited for; the methods Key of the package kubernetes name them.
	Objects []ObjectKey
}

// Failed is as returning the error, but statuses, events, data and progress are kept. Requests and reads are dropped: the contract allows
// none here.
type Failed struct{ Error *HandlerError }

// Stop: in a pipeline, the handlers after this one are not called.
type Stop struct{}

func (Done) isOutcome()   {}
func (Again) isOutcome()  {}
func (Wait) isOutcome()   {}
func (Failed) isOutcome() {}
func (Stop) isOutcome()   {}
