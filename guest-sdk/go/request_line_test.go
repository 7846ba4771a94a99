package configurator_test

import (
	"testing"
	"time"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configstore"
	"configurator.dev/sdk/extension"
	"configurator.dev/sdk/http"
	"configurator.dev/sdk/kubernetes"
	"configurator.dev/sdk/secretstore"
)

func TestEachOperationHasItsLine(t *testing.T) {
	body := configurator.JSON("{}")
	for _, check := range []struct {
		operation configurator.Operation
		expected  string
	}{
		{kubernetes.Node.Get("", "n-1", kubernetes.Cached()), "kubernetes get nodes n-1, cached"},
		{
			kubernetes.Pod.List("", kubernetes.Labels("a=b"), kubernetes.Fields("spec.nodeName=n-1")),
			"kubernetes list pods, fields spec.nodeName=n-1, labels a=b",
		},
		{
			kubernetes.Deployment.Patch("shop", "web", []any{}, kubernetes.PatchType(configurator.PatchJSON),
				kubernetes.Subresource("scale"), kubernetes.ResourceVersion("7")),
			"kubernetes json-patch deployments.apps/scale shop/web [], resource-version 7",
		},
		{
			kubernetes.Pod.Create("shop", "web", map[string]any{"kind": "Pod"}, kubernetes.MustNotExist()),
			`kubernetes create pods shop/web {"kind":"Pod"}, no precheck`,
		},
		{kubernetes.Pod.Replace("shop", "web", body, kubernetes.UID("u")), "kubernetes replace pods shop/web {}, uid u"},
		{kubernetes.Pod.Apply("shop", "web", body, kubernetes.Force()), "kubernetes apply pods shop/web {}, forced"},
		{
			kubernetes.Pod.Delete("shop", "web", kubernetes.Propagation(configurator.PropagationOrphan)),
			"kubernetes delete pods shop/web, propagation orphan",
		},
		{configstore.Pod("shop", "web-1").UID("u").Get(), "config get pod shop/web-1 (u)"},
		{configstore.Node("n-1").Create("1"), "config create node n-1 = 1"},
		{configstore.Namespace("shop").Update("1"), "config update namespace shop = 1"},
		{configstore.Workload("shop", "Deployment", "web").Delete(), "config delete workload shop/Deployment/web"},
		{configstore.AppConf("web-1", "tier").Create("gold"), "config create app-conf web-1 tier = gold"},
		{configstore.AppConf("web-1", "tier").Namespace("shop").Delete(), "config delete app-conf shop/web-1 tier"},
		{configstore.Basic("motd").Put("hello"), "config put basic motd = hello"},
		{configstore.TwoLayers("a", "b").Delete(), "config delete two-layers a b"},
		{
			configstore.Transaction(configstore.Basic("b").Put("1"), configstore.Basic("a").Delete()),
			"config transaction\n  config put basic b = 1\n  config delete basic a",
		},
		{secretstore.Secret("db").Create(), "secret create db"},
		{secretstore.Secret("db").CreateWith("hush"), "secret create db = (a value)"},
		{secretstore.Secret("db").Update(3), "secret update db, version 3"},
		{secretstore.Secret("db").UpdateWith(0, "hush"), "secret update db = (a value), version 0"},
		{secretstore.Secret("db").Delete(), "secret delete db"},
		{http.Post("https://hooks.example.com/", http.Body([]byte("hush"))), "http POST https://hooks.example.com/"},
		{extension.Extension("dns").Request("delete", "www"), "extension dns delete www"},
		{
			extension.Extension("dns").RequestWith("upsert", "www", map[string]any{"a": 1}),
			`extension dns upsert www {"a":1}`,
		},
		{nil, "no operation"},
	} {
		request := configurator.Request{Name: "r", Operation: check.operation}
		if got, want := request.String(), "r: "+check.expected; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestOptionsThatDifferFromTheDefaultsAreShown(t *testing.T) {
	request := configurator.Request{
		Name: "r", Operation: configstore.Basic("k").Get(), GroupBy: "g", Of: &configurator.ObjectRef{Namespace: "shop", Name: "web"},
		OnError: configurator.OnErrorCatch, DependsOn: []string{"a", "b"}, ReadyWhen: configurator.When("object.ok"),
		Timeout: 1500 * time.Millisecond, Partition: "team-a", Declarative: true, BootstrapDep: true, Once: true,
	}
	expected := "r: config get basic k, group-by g, of shop/web, on-error catch-error, depends-on a, depends-on b, " +
		"ready-when object.ok, timeout 1500 ms, partition team-a, declarative, bootstrap-dep, once"
	if got := request.String(); got != expected {
		t.Errorf("got  %s\nwant %s", got, expected)
	}
}

func TestReadinessIsShown(t *testing.T) {
	for expected, readiness := range map[string]configurator.Readiness{
		"":                      {},
		", ready-when exists":   configurator.WhenExists(),
		", ready-when observed": configurator.WhenObserved(),
		", ready-when healthy":  configurator.WhenHealthy(),
		", ready-when a == b":   configurator.When("a == b"),
	} {
		request := configurator.Request{Name: "r", Operation: configstore.Basic("k").Get(), ReadyWhen: readiness}
		if got, want := request.String(), "r: config get basic k"+expected; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestAnOutputHasALineForEachRequestAndArgument(t *testing.T) {
	output := configurator.NewOutput(configurator.Request{Name: "a", Operation: configstore.Basic("k").Get()}).
		Pass("n", 1).Pass("bad", func() {})
	expected := "a: config get basic k\npass n = 1\npass bad = (cannot write func() as JSON: json: unsupported type: func())\n"
	if got := output.String(); got != expected {
		t.Errorf("got  %s\nwant %s", got, expected)
	}
}
