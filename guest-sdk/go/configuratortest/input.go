// Package configuratortest makes inputs as the host does, so that `go test` can call a handler.
//
//	input := configuratortest.Input(map[string]any{"kind": "Pod"})
//	input.Results = configuratortest.Results(
//		configuratortest.Answered("node", configurator.SinkKubernetes, map[string]any{"kind": "Node"}),
//	)
//	output, err := configurator.Call("write", input)
//
// Documents are values that [configurator.JSONOf] can write; one that it cannot is a panic.
package configuratortest

import (
	"slices"

	configurator "configurator.dev/sdk"
)

// What results are dated by.
const start = "2026-01-01T00:00:00.000Z"

// Input is of one object that has changed: in the root phase, the first entry, the first attempt, at the start of 2026. All else is for
// the test to set.
func Input(object any) *configurator.Input {
	input := Batch(object)
	input.IsBatch = false
	return input
}

// Batch is an input of these objects, which have changed.
func Batch(objects ...any) *configurator.Input {
	input := &configurator.Input{
		Context: configurator.Context{
			Configurator: "test", Phase: "root", Node: "root", Entry: 1, Attempt: 1,
			Now: start, Parameters: "{}", RunID: "run",
		},
		IsBatch: true,
	}
	for _, object := range objects {
		watched := configurator.WatchedObject{Event: configurator.WatchModified, JSON: JSON(object)}
		input.Objects = append(input.Objects, watched)
	}
	return input
}

// Args are what the output of the previous phase passed on.
func Args(previous *configurator.Output) []configurator.Named {
	args := make([]configurator.Named, 0, len(previous.Args))
	for _, arg := range previous.Args {
		args = append(args, configurator.Named{Name: arg.Name, JSON: JSON(arg.Value)})
	}
	return args
}

// Again is the input with which a handler is entered again after an output: with its notes, and these answers to what it asked for.
func Again(input *configurator.Input, previous *configurator.Output, answers ...configurator.RequestResult) *configurator.Input {
	next := *input
	next.Context.Entry++
	next.Context.Cause = configurator.Cause{Kind: configurator.CauseAgain}
	next.Last = &configurator.HandlerState{Results: Results(answers...)}
	if previous.Data != nil {
		next.Last.Data = JSON(previous.Data)
	}
	return &next
}

// JSON is a value as JSON text.
func JSON(value any) configurator.JSON {
	text, err := configurator.JSONOf(value)
	if err != nil {
		panic(err)
	}
	return text
}

// Results are these, each under the name of its request.
func Results(results ...configurator.RequestResult) configurator.Results {
	entries := make(configurator.Results, 0, len(results))
	for _, result := range results {
		entry := configurator.ResultEntry{Key: result.RequestName, Results: []configurator.RequestResult{result}}
		entries = append(entries, entry)
	}
	return entries
}

// Group has results that share a GroupBy.
func Group(groupBy string, results ...configurator.RequestResult) configurator.ResultEntry {
	return configurator.ResultEntry{Key: groupBy, IsGroup: true, Results: slices.Clone(results)}
}

// Answered is the result of a request that succeeded.
func Answered(requestName string, sink configurator.RequestSink, objects ...any) configurator.RequestResult {
	result := configurator.RequestResult{RequestName: requestName, Sink: sink, Created: start, Finished: start}
	for _, object := range objects {
		result.QueryObjects = append(result.QueryObjects, JSON(object))
	}
	return result
}

// Responded is the result of an HTTP request, with a body of JSON.
func Responded(requestName string, status uint16, body any) configurator.RequestResult {
	result := Answered(requestName, configurator.SinkHTTP)
	result.HTTPResponse = &configurator.HTTPResponse{Status: status, Body: []byte(JSON(body))}
	return result
}

// Failed is the result of a request that failed and was caught.
func Failed(requestName string, sink configurator.RequestSink, kind configurator.ErrorKind, message string) configurator.RequestResult {
	result := Answered(requestName, sink)
	result.Error = &configurator.RequestError{Kind: kind, Message: message, Retryable: kind.Retryable()}
	return result
}
