package configurator

import "time"

// Context has facts about a call. Nothing here changes while it runs.
type Context struct {
	// Configurator is its name.
	Configurator string
	// Phase is its name.
	Phase string
	// Node is the path of the handler's node in the phase's tree: `install/prepare/create-pods`; the phase's name where there is none.
	Node string
	// Entry counts from 1; the end of an [Again] or a [Wait] adds one, a retry does not.
	Entry uint32
	// Attempt counts from 1 within an entry; a retry adds one.
	Attempt uint32
	// Cause is why the handler is called now.
	Cause Cause
	// Now is when this entry began: the same on a retry. [time.Now] says the same in a module, and another thing in a test.
	Now Timestamp
	// Seed is chance for the handler: made of the run, and the same on a retry. math/rand follows from it in a module, and not in a test.
	Seed uint64
	// Parameters are spec.parameters of the Configurator, with those of the node laid over; an empty object where it has none.
	Parameters JSON
	// RunID is stable for one run of one object: usable in names that must not change on a retry.
	RunID string
}

// Timestamp is a time in RFC 3339, UTC, with milliseconds: 2026-01-31T08:00:00.000Z.
type Timestamp string

// Time is the time. It is a fatal [HandlerError] where the text is none.
func (t Timestamp) Time() (time.Time, error) {
	at, err := time.Parse(time.RFC3339, string(t))
	if err != nil {
		return time.Time{}, Fatal(err.Error())
	}
	return at, nil
}

// Cause is why the handler is called now.
type Cause struct {
	Kind CauseKind
	// Signal is the one that has come, with CauseSignal.
	Signal Signal
	// Changed is the object that has changed, with CauseChanged.
	Changed ObjectKey
}

// Signal is one that a handler waited for. Data is what came with it, or empty.
type Signal struct {
	Name string
	Data JSON
}

// CauseKind is why a handler is called.
type CauseKind uint8

// Why a handler is called.
const (
	// CauseEntered is the first call in this phase.
	CauseEntered CauseKind = iota
	// CauseRetry: a request of the previous call failed, or the call itself did.
	CauseRetry
	// CauseAgain: the previous call ended with [Again].
	CauseAgain
	// CauseTimer: the time of a [Wait] has come.
	CauseTimer
	// CauseSignal: a signal of a [Wait] has come.
	CauseSignal
	// CauseChanged: an object of a [Wait] has changed.
	CauseChanged
	// CauseRecovered: the host restarted or another took over. [Input.Last] is what was stored, without results.
	CauseRecovered
)

func (k CauseKind) String() string {
	return word(k, "entered", "retry", "again", "timer", "signal", "changed", "recovered")
}

// The contract's word for one of its cases.
func word[K ~uint8](kind K, words ...string) string {
	if int(kind) < len(words) {
		return words[kind]
	}
	return "unknown"
}
