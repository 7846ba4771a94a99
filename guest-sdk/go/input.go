package configurator

import (
	"fmt"
	"strings"
)

// Who leaves results and arguments.
const previous = "the previous phase"

// Input is what a handler decides on. The same input is to give the same output.
type Input struct {
	// Context has facts about this call.
	Context Context
	// Objects of the run: one, or those of the batch, which is never empty.
	Objects []WatchedObject
	// IsBatch says whether the run is of a batch.
	IsBatch bool
	// Results are what became of the requests of the previous phase, in their order.
	Results Results
	// Args are what the previous phase passed on, in its order.
	Args []Named
	// Outputs are what earlier steps of the same flow have left, by path. In a machine.
	Outputs []Named
	// Last is what is known of the handler where it is entered again, and nil otherwise. In a machine.
	Last *HandlerState
	// Plan is what the handlers before this one planned, and what this one has; nil outside of a pipeline.
	Plan *Plan
}

// Named is a document with a name.
type Named struct {
	Name string
	JSON JSON
}

// WatchedObject is an object of the run.
type WatchedObject struct {
	// Event is why it is in the run.
	Event WatchEvent
	// JSON is the object, as it was watched.
	JSON JSON
}

// WatchEvent is why an object is in a run. Several changes since the last run are one WatchModified.
type WatchEvent uint8

// Why an object is in a run.
const (
	WatchAdded WatchEvent = iota
	WatchModified
	WatchDeleted
	WatchResync
)

func (e WatchEvent) String() string { return word(e, "added", "modified", "deleted", "resync") }

// HandlerState is what the previous entry of the same handler left behind.
type HandlerState struct {
	// StartTime is when it was first entered, and EndTime when it ended; empty where that is not so yet.
	StartTime, EndTime Timestamp
	Done               bool
	Failed             bool
	Fatal              bool
	// Error is how it failed, or nil.
	Error *HandlerError
	// Data are the handler's own notes; empty where it has left none.
	Data JSON
	// Results are what became of the requests of the previous entry.
	Results Results
}

// Read reads the object into a value, as [JSON.Read] does.
func (o *WatchedObject) Read(into any) error { return o.JSON.read(into, "the object") }

// Object reads the object into a value: a struct with the fields that matter, a type of k8s.io/api, a map. Of a batch, it is the first.
//
// It is a fatal [HandlerError] when the object does not fit; so are the errors of the methods below.
func (i *Input) Object(into any) error { return i.ObjectJSON().read(into, "the object") }

// ObjectJSON is the object, as it was watched. Of a batch, the first.
func (i *Input) ObjectJSON() JSON {
	if len(i.Objects) == 0 {
		return "null"
	}
	return i.Objects[0].JSON
}

// Event is why the object is in the run. Of a batch, the first.
func (i *Input) Event() WatchEvent {
	if len(i.Objects) == 0 {
		return WatchModified
	}
	return i.Objects[0].Event
}

// Result is the result of the request of this name. It is an error where there is none, which is so of a request that failed with
// OnErrorDrop: use [Input.ResultOpt] for those.
func (i *Input) Result(requestName string) (*RequestResult, error) {
	entry := i.Results.find(requestName)
	if entry == nil {
		return nil, missing(previous, "result", requestName, i.Results.keys())
	}
	if entry.IsGroup {
		return nil, Fatal(fmt.Sprintf("`%s` is a group of results, not the result of one request: read it as a group", requestName))
	}
	return entry.one(), nil
}

// ResultOpt is the result of the request of this name, or nil: also where it is the key of a group.
func (i *Input) ResultOpt(requestName string) *RequestResult { return i.Results.One(requestName) }

// Group has the results of all requests with this GroupBy, in the order of the requests. It is an error where there are none.
func (i *Input) Group(groupBy string) ([]RequestResult, error) {
	entry := i.Results.find(groupBy)
	if entry == nil {
		return nil, missing(previous, "result", groupBy, i.Results.keys())
	}
	if !entry.IsGroup {
		return nil, Fatal(fmt.Sprintf("`%s` is the result of one request, not a group: read it as a result", groupBy))
	}
	return entry.Results, nil
}

// GroupOpt has the results of all requests with this GroupBy; none where no request had it.
func (i *Input) GroupOpt(groupBy string) []RequestResult { return i.Results.Group(groupBy) }

// Arg reads what the previous phase passed on under this name. It is an error where it has not.
func (i *Input) Arg(name string, into any) error {
	text := find(i.Args, name)
	if text == "" {
		return missing(previous, "argument", name, names(i.Args))
	}
	return text.read(into, "the argument `"+name+"`")
}

// ArgJSON is what the previous phase passed on under this name, or empty.
func (i *Input) ArgJSON(name string) JSON { return find(i.Args, name) }

// Answer is, in a machine, the result of the request of this name that the entry before asked for. It is nil on the first entry, where
// the request was not asked for, and where the host does not remember: then ask again.
func (i *Input) Answer(requestName string) *RequestResult {
	if i.Last == nil {
		return nil
	}
	return i.Last.Results.One(requestName)
}

// Answers are, in a machine, the results of all requests with this GroupBy that the entry before asked for; none where Answer is nil.
func (i *Input) Answers(groupBy string) []RequestResult {
	if i.Last == nil {
		return nil
	}
	return i.Last.Results.Group(groupBy)
}

// Notes reads, in a machine, what this handler has noted in [Output.Data], and says whether there is any.
func (i *Input) Notes(into any) (bool, error) {
	if i.Last == nil || i.Last.Data == "" {
		return false, nil
	}
	return true, i.Last.Data.read(into, "the notes")
}

// OutputOf reads, in a machine, what the step at this path has left in [Output.Output]. The path is that within the flow; outside a
// flow it begins with the phase. It is an error where the step has left nothing.
func (i *Input) OutputOf(path string, into any) error {
	text := find(i.Outputs, path)
	if text == "" {
		return missing("earlier steps", "output", path, names(i.Outputs))
	}
	return text.read(into, "the output of `"+path+"`")
}

// Parameters reads the Configurator's spec.parameters, with those of the node laid over.
func (i *Input) Parameters(into any) error { return i.Context.Parameters.read(into, "the parameters") }

func find(documents []Named, name string) JSON {
	for _, document := range documents {
		if document.Name == name {
			return document.JSON
		}
	}
	return ""
}

func names(documents []Named) []string {
	names := make([]string, 0, len(documents))
	for _, document := range documents {
		names = append(names, document.Name)
	}
	return names
}

// What to say where who has left no what under this key.
func missing(who, what, key string, known []string) *HandlerError {
	if len(known) == 0 {
		return Fatal(fmt.Sprintf("no %s `%s`: %s left no %ss", what, key, who, what))
	}
	return Fatal(fmt.Sprintf("no %s `%s`: %s left %s", what, key, who, strings.Join(known, ", ")))
}
