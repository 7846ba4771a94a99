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
		{Secret("db").Update(1), nil},
		{Secret("db").UpdateWith(1, "hush"), "hush"},
		{Secret("db").UpdateWith(1, nil), configurator.JSON("null")},
	} {
		if got := one.operation.(configurator.SecretOperation).Value; got != one.value {
			t.Errorf("got %v, want %v", got, one.value)
		}
	}
}

func TestAnUpdateNamesTheVersionThatIsStored(t *testing.T) {
	for _, operation := range []configurator.Operation{Secret("db").Update(0), Secret("db").UpdateWith(0, "hush")} {
		got := operation.(configurator.SecretOperation)
		if got.Verb != configurator.SecretUpdate || got.Version == nil || *got.Version != 0 {
			t.Errorf("got %+v", got)
		}
	}
	if got := Secret("db").Create().(configurator.SecretOperation).Version; got != nil {
		t.Errorf("got %d", *got)
	}
}

func TestASecretIsAnEntryOfASet(t *testing.T) {
	if got, want := Secret("db").Content(), (configurator.SecretContent{Name: "db"}); got != want {
		t.Errorf("got %+v", got)
	}
	want := configurator.SecretContent{Name: "db", Value: "hush", Partition: "team-a"}
	if got := Secret("db").ContentWith("hush").InPartition("team-a"); got != want {
		t.Errorf("got %+v", got)
	}
	if got := Secret("db").ContentWith(nil).Value; got != configurator.JSON("null") {
		t.Errorf("got %v", got)
	}
}
