package configurator

// Output is what a handler returns. What is left out has the contract's default: nothing is asked for, nothing passed on, and the
// handler's work is complete. Documents are values that [JSONOf] can write.
type Output struct {
	// Requests are what the host is to do.
	Requests []Request
	// Strategy is in which order. Default: Parallel.
	Strategy ExecuteStrategy
	// BatchErrorStrategy is what becomes of failed requests that have a GroupBy and no OnError. Default: they are caught.
	BatchErrorStrategy BatchErrorStrategy
	// Args are arguments for the next phase, in order.
	Args []Member
	// Outcome says whether the handler's work is complete. nil: it is.
	Outcome Outcome
	// NextPhase is the one that follows, whatever the transitions say. Refused in a chain, where the phases follow one another.
	NextPhase string
	// Statuses are merged into the object's status by server-side apply, at the end of the run.
	Statuses []StatusUpdate
	// Events are Kubernetes Events about the object.
	Events []Event
	// Data are the handler's own notes, which it finds when it is entered again; nil: none. In a machine.
	Data any
	// Output is for later steps of the same flow; nil: none. In a machine.
	Output any
	// Details are what a person sees under ViewObjectDetail; nil: none. In a machine.
	Details any
	// Progress is how far the handler is; nil: it does not say. In a machine.
	Progress *Progress
	// Desired is all that the owner is to have; the host deletes what is missing here. nil: nothing is said about it. In a pipeline, its
	// entries join the plan. In a chain, one phase may return a set, if the Configurator has spec.sets. Refused in a machine.
	Desired *DesiredSet
	// RemovedFromPlan are names of requests and entries that the plan of a pipeline loses.
	RemovedFromPlan []string
	// Reads are requests that only read. In a pipeline, with [Again], the host executes them at once, and [Input.Answer] has their results.
	Reads []Request
}

// ExecuteStrategy is the order of requests.
type ExecuteStrategy uint8

// The orders of requests.
const (
	StrategyDefault ExecuteStrategy = iota
	// Serial: one after another; the first failure that nothing catches stops the rest.
	Serial
	// Parallel: side by side.
	Parallel
	// Graph: each when what it names in DependsOn is ready.
	Graph
)

// BatchErrorStrategy is what becomes of a failed request that has a GroupBy.
type BatchErrorStrategy uint8

// What becomes of a failed request that has a GroupBy.
const (
	BatchDefault BatchErrorStrategy = iota
	// BatchDropError: its result is left out of the group.
	BatchDropError
	// BatchCatchError: its result joins the group with Error set.
	BatchCatchError
)

// StatusUpdate is merged into the object's status. In a batch, Of names the object.
type StatusUpdate struct {
	Of     *ObjectRef
	Status any
}

// Event is a Kubernetes Event about the object. In a batch, Of names the object.
type Event struct {
	Of              *ObjectRef
	Type            EventType
	Reason, Message string
}

// EventType is how serious an Event is.
type EventType uint8

// How serious an Event is.
const (
	EventNormal EventType = iota
	EventWarning
)

// Progress is how far a handler is: 0 to 100 percent.
type Progress struct {
	Percent uint8
	Message string
}

// NewOutput is an output with these requests.
func NewOutput(requests ...Request) *Output { return &Output{Requests: requests} }

// Request adds requests.
func (o *Output) Request(requests ...Request) *Output {
	o.Requests = append(o.Requests, requests...)
	return o
}

// Pass adds an argument for the next phase, which reads it with [Input.Arg].
func (o *Output) Pass(name string, value any) *Output {
	o.Args = append(o.Args, Member{name, value})
	return o
}

// Status adds fields of the object's status.
func (o *Output) Status(status any) *Output {
	o.Statuses = append(o.Statuses, StatusUpdate{Status: status})
	return o
}

// StatusOf adds fields of the status of one object of the batch.
func (o *Output) StatusOf(of ObjectRef, status any) *Output {
	o.Statuses = append(o.Statuses, StatusUpdate{Of: &of, Status: status})
	return o
}

// Event adds an Event about the object.
func (o *Output) Event(kind EventType, reason, message string) *Output {
	o.Events = append(o.Events, Event{Type: kind, Reason: reason, Message: message})
	return o
}

// EventOf adds an Event about one object of the batch.
func (o *Output) EventOf(of ObjectRef, kind EventType, reason, message string) *Output {
	o.Events = append(o.Events, Event{Of: &of, Type: kind, Reason: reason, Message: message})
	return o
}

// RemoveFromPlan removes the requests and entries of these names from the plan of a pipeline.
func (o *Output) RemoveFromPlan(names ...string) *Output {
	o.RemovedFromPlan = append(o.RemovedFromPlan, names...)
	return o
}

// Read adds requests that only read, and ends with [Again]: the host enters this handler again with their results, by [Input.Answer]. In a
// pipeline.
func (o *Output) Read(requests ...Request) *Output {
	o.Reads = append(o.Reads, requests...)
	return o.End(Again{})
}

// End says how the call ends: with one of [Done], [Again], [Wait], [Failed] and [Stop].
func (o *Output) End(outcome Outcome) *Output {
	o.Outcome = outcome
	return o
}
