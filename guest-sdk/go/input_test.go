package configurator_test

import (
	"errors"
	"strings"
	"testing"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configuratortest"
)

type object = map[string]any

func input() *configurator.Input {
	input := configuratortest.Input(object{"metadata": object{"name": "web-1"}})
	input.Results = configuratortest.Results(
		configuratortest.Answered("node", configurator.SinkKubernetes, object{"kind": "Node"}),
	)
	pod := configuratortest.Answered("pod-1", configurator.SinkKubernetes, object{"n": 1})
	input.Results = append(input.Results, configuratortest.Group("pods", pod))
	previous := configurator.NewOutput().Pass("layers", []string{"node", "namespace"})
	input.Args = configuratortest.Args(previous)
	return input
}

func checkFatal(t *testing.T, err error, expected string) {
	t.Helper()
	var refusal *configurator.HandlerError
	if !errors.As(err, &refusal) || !refusal.Fatal || refusal.Message != expected {
		t.Errorf("got  %v\nwant %s", err, expected)
	}
}

func TestResultsAndGroupsAreFoundByName(t *testing.T) {
	input := input()
	node, err := input.Result("node")
	if err != nil {
		t.Fatal(err)
	}
	var read struct{ Kind string }
	if err := node.Object(&read); err != nil || read.Kind != "Node" {
		t.Errorf("got %+v, %v", read, err)
	}
	if pods, err := input.Group("pods"); len(pods) != 1 || err != nil {
		t.Errorf("got %v, %v", pods, err)
	}
	var layers []string
	if err := input.Arg("layers", &layers); len(layers) != 2 || err != nil {
		t.Errorf("got %v, %v", layers, err)
	}
	if input.ArgJSON("layers") != `["node","namespace"]` || input.ArgJSON("layer") != "" {
		t.Error("an argument is handed on as it is")
	}
	if input.ResultOpt("pods") != nil || input.GroupOpt("node") != nil {
		t.Error("a group is not a result")
	}
}

func TestWhatIsMissingIsNamedWithWhatIsThere(t *testing.T) {
	input := input()
	_, err := input.Result("nod")
	checkFatal(t, err, "no result `nod`: the previous phase left node, pods")
	checkFatal(t, input.Arg("layer", new(any)), "no argument `layer`: the previous phase left layers")
	_, err = configuratortest.Input(object{}).Group("node")
	checkFatal(t, err, "no result `node`: the previous phase left no results")
	_, err = input.Result("pods")
	checkFatal(t, err, "`pods` is a group of results, not the result of one request: read it as a group")
	_, err = input.Group("node")
	checkFatal(t, err, "`node` is the result of one request, not a group: read it as a result")
}

func TestALeafFindsWhatItAskedForAndNoted(t *testing.T) {
	first := configuratortest.Input(object{})
	if has, err := first.Notes(new(any)); has || err != nil || first.Answer("pod") != nil || first.Answers("pods") != nil {
		t.Error("on the first entry there is nothing")
	}
	output := &configurator.Output{Data: object{"tries": 2}}
	next := configuratortest.Again(first, output, configuratortest.Answered("pod", configurator.SinkKubernetes, object{"n": 1}))
	next.Outputs = []configurator.Named{{Name: "prepare", JSON: `{"size": 3}`}}
	var notes struct{ Tries int }
	if has, err := next.Notes(&notes); !has || err != nil || notes.Tries != 2 {
		t.Errorf("got %t, %+v, %v", has, notes, err)
	}
	if next.Context.Entry != 2 || next.Context.Cause.Kind != configurator.CauseAgain || first.Context.Entry != 1 {
		t.Error("it is another entry")
	}
	if next.Answer("pod").QueryObjects[0].At("n").Int() != 1 {
		t.Error("the answer is there")
	}
	var prepared struct{ Size int }
	if err := next.OutputOf("prepare", &prepared); err != nil || prepared.Size != 3 {
		t.Errorf("got %+v, %v", prepared, err)
	}
	checkFatal(t, next.OutputOf("prepar", &prepared), "no output `prepar`: earlier steps left prepare")
}

func TestABatchHasObjects(t *testing.T) {
	batch := configuratortest.Batch(1, 2)
	if configuratortest.Input(object{}).Event() != configurator.WatchModified || batch.Event() != configurator.WatchModified {
		t.Error("the event is that of the first object")
	}
	if !batch.IsBatch || len(batch.Objects) != 2 || batch.ObjectJSON() != "1" {
		t.Errorf("got %+v", batch)
	}
	var second int
	if err := batch.Objects[1].Read(&second); second != 2 || err != nil {
		t.Errorf("got %d, %v", second, err)
	}
}

func TestAWrongShapeNamesTheDocument(t *testing.T) {
	var number int
	err := input().Object(&number)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot read the object as *int: ") {
		t.Errorf("got %v", err)
	}
}

func TestATimeIsRead(t *testing.T) {
	at, err := input().Context.Now.Time()
	if err != nil || at.UnixMilli() != 1767225600000 {
		t.Errorf("got %v, %v", at, err)
	}
	if _, err := configurator.Timestamp("soon").Time(); err == nil {
		t.Error("that is no time")
	}
}
