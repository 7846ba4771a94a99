package configurator_test

import (
	"slices"
	"testing"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configstore"
)

func TestAReadEntersTheHandlerAgain(t *testing.T) {
	read := func(name string) configurator.Request {
		return configurator.Request{Name: name, Operation: configstore.Basic(name).Get()}
	}
	output := configurator.NewOutput().Read(read("a")).Read(read("b"))
	if output.Outcome != (configurator.Again{}) || len(output.Requests) != 0 {
		t.Errorf("got %+v", output)
	}
	if len(output.Reads) != 2 || output.Reads[0].Name != "a" || output.Reads[1].Name != "b" {
		t.Errorf("got %v", output.Reads)
	}
}

func TestNamesToRemoveFromThePlanKeepTheirOrder(t *testing.T) {
	output := configurator.NewOutput().RemoveFromPlan("a").RemoveFromPlan("b", "c")
	if want := []string{"a", "b", "c"}; !slices.Equal(output.RemovedFromPlan, want) {
		t.Errorf("got %q, want %q", output.RemovedFromPlan, want)
	}
}
