package secretstore

import (
	"testing"

	configurator "configurator.dev/sdk"
)

func TestTheHostMakesAValueOnlyWhereItIsAskedTo(t *testing.T) {
	for _, one := range []struct {
		operation configurator.Operation
		value     any
	}{
		{Secret("db").Create(), nil},
		{Secret("db").CreateWith("hush"), "hush"},
		{Secret("db").CreateWith(nil), configurator.JSON("null")},
	} {
		if got := one.operation.(configurator.SecretOperation).Value; got != one.value {
			t.Errorf("got %v, want %v", got, one.value)
		}
	}
}
