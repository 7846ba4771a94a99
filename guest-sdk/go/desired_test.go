package configurator_test

import (
	"slices"
	"testing"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/kubernetes"
)

func TestEntriesKeepTheirOrder(t *testing.T) {
	set := &configurator.DesiredSet{}
	set.Entry(configurator.DesiredEntry{Name: "a", Content: kubernetes.Content(object{})}).
		Entry(configurator.DesiredEntry{Name: "b", DependsOn: []string{"a"}}, configurator.DesiredEntry{Name: "c"})
	var names []string
	for _, entry := range set.Entries {
		names = append(names, entry.Name)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

func TestAnEntryLeavesItsPoliciesToTheHost(t *testing.T) {
	entry := configurator.DesiredEntry{Name: "a"}
	if entry.OnExisting != configurator.OnExistingDefault || entry.OnConflict != configurator.OnConflictDefault ||
		entry.OnImmutable != configurator.OnImmutableDefault || entry.OnDelete != configurator.OnDeleteDefault ||
		entry.ReadyWhen.Kind != configurator.ReadinessDefault {
		t.Errorf("got %+v", entry)
	}
}
