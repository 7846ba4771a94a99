package configurator_test

import (
	"testing"
	"time"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configstore"
	"configurator.dev/sdk/kubernetes"
	"configurator.dev/sdk/secretstore"
)

func TestASetHasALineForEachEntry(t *testing.T) {
	configMap := kubernetes.Content(object{"kind": "ConfigMap", "metadata": object{"name": "a"}})
	set := &configurator.DesiredSet{
		Entries: []configurator.DesiredEntry{
			{Name: "a", Content: configMap},
			{
				Name: "b", Content: configMap, DependsOn: []string{"a", "c"}, ReadyWhen: configurator.When("object.data.ready"),
				FailedWhen: "object.data.failed", Timeout: 2 * time.Second, OnExisting: configurator.OnExistingCreateOnly,
				OnConflict: configurator.OnConflictForce, OnImmutable: configurator.OnImmutableRecreate,
				IgnoredPaths: []string{".spec.replicas"}, OnDelete: configurator.OnDeleteOnlyUnderWipeOut,
			},
			{Name: "c", Content: configstore.Workload("shop", "Deployment", "web").UID("u").Content("1")},
			{Name: "d", Content: configstore.AppConf("web", "tier").Content("gold")},
			{Name: "e", Content: configstore.Basic("k").Content("v").InPartition("p")},
			{Name: "f", Content: configstore.TwoLayers("a", "b").Content("2")},
			{Name: "g", Content: secretstore.Secret("db").Content()},
			{Name: "h", Content: secretstore.Secret("api").ContentWith("word")},
		},
		AllowEmpty:        true,
		TerminationPolicy: configurator.TerminationKeepVolumes,
		Orders:            &configurator.Orders{Provision: [][]string{{"a"}, {"b", "c"}}, Terminate: [][]string{{"b"}, {"a"}}},
		PreTerminate:      []configurator.Request{{Name: "drain", Operation: configstore.Basic("k").Delete()}},
	}
	output := &configurator.Output{Desired: set, RemovedFromPlan: []string{"old"}}
	output.Read(configurator.Request{Name: "class", Operation: configstore.Basic("class").Get()})
	expected := `read class: config get basic class
desired a: kubernetes {"kind":"ConfigMap","metadata":{"name":"a"}}
desired b: kubernetes {"kind":"ConfigMap","metadata":{"name":"a"}}, depends-on a, depends-on c, ready-when object.data.ready, failed-when object.data.failed, timeout 2000 ms, on-existing create-only, on-conflict force, on-immutable recreate, ignores .spec.replicas, on-delete only-under-wipe-out
desired c: config workload shop/Deployment/web (u) = 1
desired d: config app-conf web tier = gold
desired e: config basic k = v, partition p
desired f: config two-layers a b = 2
desired g: secret db
desired h: secret api = (a value)
desired set: allow-empty, termination-policy keep-volumes, provision a | b c, terminate b | a
pre-terminate drain: config delete basic k
remove-from-plan old
`
	if got := output.String(); got != expected {
		t.Errorf("got  %s\nwant %s", got, expected)
	}
}

func TestASetWithoutOptionsHasNoLineForThem(t *testing.T) {
	set := &configurator.DesiredSet{Entries: []configurator.DesiredEntry{{Name: "a"}}, Orders: &configurator.Orders{}}
	if got, want := set.String(), "desired a: no content\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAPathReplacesTheTerminationPolicy(t *testing.T) {
	set := &configurator.DesiredSet{
		TerminationPolicy: configurator.TerminationWipeOut, TerminationPolicyAt: ".spec.policy",
		Orders: &configurator.Orders{Update: [][]string{{"a", "b"}}},
	}
	if got, want := set.String(), "desired set: termination-policy at .spec.policy, update a b\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
