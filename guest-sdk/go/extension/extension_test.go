package extension

import (
	"testing"

	configurator "configurator.dev/sdk"
)

func TestABodyIsSentOnlyIfItIsGiven(t *testing.T) {
	for _, check := range []struct {
		operation configurator.Operation
		body      any
	}{
		{Extension("dns").Request("delete", "www"), nil},
		{Extension("dns").RequestWith("upsert", "www", "192.0.2.1"), "192.0.2.1"},
		{Extension("dns").RequestWith("upsert", "www", nil), configurator.JSON("null")},
	} {
		if got := check.operation.(configurator.ExtensionOperation).Body; got != check.body {
			t.Errorf("got %v, want %v", got, check.body)
		}
	}
}
