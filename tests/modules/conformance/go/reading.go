package conformance

import (
	"strconv"

	configurator "configurator.dev/sdk"
)

// What a result says.
func told(result *configurator.RequestResult) object {
	objects := []configurator.JSON{}
	if answered, err := result.Objects(); err == nil {
		objects = answered
	}
	told := object{
		"name":        result.RequestName,
		"declarative": result.Declarative,
		"objects":     objects,
		"error":       nil,
		"response":    nil,
		"created":     string(result.Created),
		"finished":    nil,
	}
	if result.Finished != "" {
		told["finished"] = string(result.Finished)
	}
	if failure := result.Error; failure != nil {
		told["error"] = object{
			"kind":      failure.Kind.String(),
			"message":   failure.Message,
			"retryable": failure.Retryable,
			"status":    failure.Status,
		}
	}
	if response := result.HTTPResponse; response != nil {
		// Names of headers are in lower case, so that there is none of this one.
		var kind any
		if found := response.Header("Content-Type"); found != "" {
			kind = found
		}
		told["response"] = object{"status": response.Status, "type": kind, "body": string(response.Body)}
	}
	return told
}

// Tells of each result, in order; of `wanted`, which must be there, whether it was found; of `absent`, that it is not there.
func results(input *configurator.Input) (*configurator.Output, error) {
	all := list{}
	for _, entry := range input.Results {
		for i := range entry.Results {
			all = append(all, told(&entry.Results[i]))
		}
	}
	wanted, err := input.Result("wanted")
	if err != nil {
		return nil, err
	}
	found, err := wanted.Found()
	if err != nil {
		return nil, err
	}
	return configurator.NewOutput().
		Pass("all", all).
		Pass("found", found != "").
		Pass("absent", input.ResultOpt("absent") != nil), nil
}

func names(group []configurator.RequestResult) []string {
	names := []string{}
	for _, one := range group {
		names = append(names, one.RequestName)
	}
	return names
}

func groups(input *configurator.Input) (*configurator.Output, error) {
	pods, err := input.Group("pods")
	if err != nil {
		return nil, err
	}
	failed := 0
	for _, one := range pods {
		if one.Error != nil {
			failed++
		}
	}
	return configurator.NewOutput().
		Pass("pods", names(pods)).
		Pass("failed", failed).
		Pass("none", names(input.GroupOpt("none"))), nil
}

// Reads the result or the group `asked`, or why the object is in the run, as the parameter `read` says.
func reads(input *configurator.Input) (*configurator.Output, error) {
	how, err := parameter(input, "read")
	if err != nil {
		return nil, err
	}
	var read any
	switch how {
	case "group":
		group, err := input.Group("asked")
		if err != nil {
			return nil, err
		}
		read = names(group)
	case "answers":
		read = names(input.Answers("asked"))
	case "event":
		read = input.Event().String()
	default:
		result, err := input.Result("asked")
		if err != nil {
			return nil, err
		}
		if read, err = readResult(result, how); err != nil {
			return nil, err
		}
	}
	return configurator.NewOutput().Pass("read", read), nil
}

func readResult(result *configurator.RequestResult, how string) (read any, err error) {
	switch how {
	case "succeeded":
		return true, result.Succeeded()
	case "object":
		err = result.Object(&read)
		return read, err
	case "objects":
		return result.Objects()
	default:
		response, err := result.Response()
		if err == nil {
			err = response.Read(&read)
		}
		return read, err
	}
}

// Reads an argument and hands it on beside another, untouched.
func arguments(input *configurator.Input) (*configurator.Output, error) {
	var count uint64
	if err := input.Arg("count", &count); err != nil {
		return nil, err
	}
	return configurator.NewOutput().Pass("count", count+1).Pass("raw", input.ArgJSON("raw")), nil
}

func context(input *configurator.Input) (*configurator.Output, error) {
	context := input.Context
	var detail any
	switch context.Cause.Kind {
	case configurator.CauseSignal:
		detail = object{"name": context.Cause.Signal.Name, "data": context.Cause.Signal.Data}
	case configurator.CauseChanged:
		key := context.Cause.Changed
		detail = []string{key.Group, key.Version, key.Plural, key.Namespace, key.Name}
	}
	return &configurator.Output{Data: object{
		"configurator": context.Configurator,
		"phase":        context.Phase,
		"node":         context.Node,
		"entry":        context.Entry,
		"attempt":      context.Attempt,
		"cause":        context.Cause.Kind.String(),
		"detail":       detail,
		"now":          string(context.Now),
		"seed":         strconv.FormatUint(context.Seed, 10),
		"runId":        context.RunID,
		"parameters":   context.Parameters,
	}}, nil
}

// Adds one to its notes; tells of its last failure, of the answer to `ask`, and of the step that the parameter `step` names.
func state(input *configurator.Input) (*configurator.Output, error) {
	var notes struct{ Count uint64 }
	if _, err := input.Notes(&notes); err != nil {
		return nil, err
	}
	told := object{}
	if last := input.Last; last != nil {
		told["failed"], told["fatal"], told["error"] = last.Failed, last.Fatal, nil
		if last.Error != nil {
			told["error"] = last.Error.Message
		}
	}
	var answer any
	if result := input.Answer("ask"); result != nil {
		if err := result.Object(&answer); err != nil {
			return nil, err
		}
	}
	path, err := parameter(input, "step")
	if err != nil {
		return nil, err
	}
	var step any
	if err := input.OutputOf(path, &step); err != nil {
		return nil, err
	}
	return &configurator.Output{
		Data:     object{"count": notes.Count + 1},
		Output:   object{"answer": answer, "step": step},
		Details:  told,
		Progress: &configurator.Progress{Percent: 50, Message: "half"},
		Outcome:  configurator.Again{},
	}, nil
}
