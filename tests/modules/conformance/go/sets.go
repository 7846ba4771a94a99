package conformance

import (
	"time"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configstore"
	"configurator.dev/sdk/kubernetes"
	"configurator.dev/sdk/secretstore"
)

func desired(input *configurator.Input) (*configurator.Output, error) {
	name, err := parameter(input, "set")
	if err != nil {
		return nil, err
	}
	set := &configurator.DesiredSet{}
	switch name {
	case "dependencies":
		set.Entry(configMapEntry("a"), configMapEntry("b", "a"), configMapEntry("c", "a"), configMapEntry("d", "b", "c"))
	case "readiness":
		set.Entry(readiness()...)
	case "policies":
		set.Entry(policies()...)
	case "config":
		set.Entry(configContents()...)
	case "secrets":
		set.Entry(secretContents()...)
	case "empty":
		set.AllowEmpty = true
	case "orders":
		set.Entry(configMapEntry("a"), configMapEntry("b"), configMapEntry("c"))
		set.Orders = &configurator.Orders{
			Provision: [][]string{{"a"}, {"b", "c"}},
			Update:    [][]string{{"c"}, {"a"}},
			Terminate: [][]string{{"b"}, {"a"}},
		}
	case "policy":
		set.Entry(configMapEntry("a")).TerminationPolicy = configurator.TerminationWipeOut
	case "policy-path":
		set.Entry(configMapEntry("a")).TerminationPolicyAt = ".spec.terminationPolicy"
	case "pre-terminate":
		set.Entry(configMapEntry("a")).PreTerminate = []configurator.Request{
			{Name: "pod", Operation: kubernetes.Pod.Delete("shop", "web")},
			{
				Name: "key", Operation: configstore.Basic("region").Delete(), DependsOn: []string{"pod"},
				ReadyWhen: configurator.WhenExists(),
			},
		}
	default:
		return nil, configurator.Fatal("there is no set " + name)
	}
	return &configurator.Output{Desired: set}, nil
}

func configMapEntry(name string, dependsOn ...string) configurator.DesiredEntry {
	body := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"namespace": "shop", "name": name}}
	return configurator.DesiredEntry{Name: name, Content: kubernetes.Content(body), DependsOn: dependsOn}
}

func readiness() []configurator.DesiredEntry {
	a, b, c, d := configMapEntry("a"), configMapEntry("b"), configMapEntry("c"), configMapEntry("d")
	a.ReadyWhen = configurator.WhenExists()
	b.ReadyWhen = configurator.WhenObserved()
	c.ReadyWhen = configurator.WhenHealthy()
	d.ReadyWhen = configurator.When("object.data.ready == 'yes'")
	d.FailedWhen = "object.data.ready == 'never'"
	d.Timeout = 90 * time.Second
	return []configurator.DesiredEntry{a, b, c, d}
}

func policies() []configurator.DesiredEntry {
	a, b, c := configMapEntry("a"), configMapEntry("b"), configMapEntry("c")
	a.OnExisting, a.OnConflict = configurator.OnExistingRefuse, configurator.OnConflictFail
	a.OnImmutable, a.OnDelete = configurator.OnImmutableFail, configurator.OnDeleteWithOwner
	b.OnExisting, b.OnConflict = configurator.OnExistingAdopt, configurator.OnConflictForce
	b.OnImmutable, b.OnDelete = configurator.OnImmutableRecreate, configurator.OnDeleteRetain
	c.OnExisting, c.OnDelete = configurator.OnExistingCreateOnly, configurator.OnDeleteOnlyUnderWipeOut
	c.IgnoredPaths = []string{".data.count", ".metadata.labels['a/b']"}
	return []configurator.DesiredEntry{a, b, c}
}

func configContents() []configurator.DesiredEntry {
	level := configstore.AppConf("web", "log.level")
	return []configurator.DesiredEntry{
		{Name: "pod", Content: configstore.Pod("shop", "web").UID("6e2d").Content("a")},
		{Name: "node", Content: configstore.Node("node-1").Content("b")},
		{Name: "namespace", Content: configstore.Namespace("shop").Content("c")},
		{Name: "workload", Content: configstore.Workload("shop", "Deployment", "web").Content("d")},
		{Name: "app-conf", Content: level.Content("info")},
		{Name: "app-conf-elsewhere", Content: level.Namespace("shop").Content("é")},
		{Name: "basic", Content: configstore.Basic("region").Content("north").InPartition("team-a")},
		{Name: "two-layers", Content: configstore.TwoLayers("teams", "red").Content("")},
	}
}

func secretContents() []configurator.DesiredEntry {
	db := secretstore.Secret("db")
	return []configurator.DesiredEntry{
		{Name: "generated", Content: db.Content()},
		{Name: "given", Content: secretstore.Secret("api").ContentWith(object{"user": "a"})},
		{Name: "elsewhere", Content: db.Content().InPartition("team-a")},
	}
}
