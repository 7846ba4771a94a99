package workloadconfig

import (
	"errors"
	"slices"
	"testing"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configuratortest"
)

type object = map[string]any

func deployment(namespace, name string) object {
	container := object{
		"name": "server", "image": "registry.example.com/web:1",
		"ports": []any{object{"containerPort": 8080}},
		"env":   []any{object{"name": "PORT", "value": "8080"}, object{"name": "TOKEN", "value": "hush"}},
	}
	return object{
		"metadata": object{
			"namespace": namespace, "name": name, "uid": "u-" + name,
			"annotations": object{"config.configurator.dev/tier": "gold", "other": "x"},
		},
		"spec": object{
			"replicas": 2,
			"template": object{"spec": object{"serviceAccountName": name, "containers": []any{container}}},
		},
	}
}

func namespace(name string, annotations object) configurator.RequestResult {
	read := object{"metadata": object{"name": name, "annotations": annotations}}
	return configuratortest.Answered(namespaceRequest(name), configurator.SinkKubernetes, read)
}

func entry(name string, value string) configurator.RequestResult {
	read := object{"key": "k", "uid": "u-" + name, "value": value}
	return configuratortest.Answered("entry/shop/"+name, configurator.SinkConfigstore, read)
}

func absent(name string) configurator.RequestResult {
	return configuratortest.Failed("entry/shop/"+name, configurator.SinkConfigstore, configurator.ResourceNotFound, "not found")
}

func check(t *testing.T, handler string, input *configurator.Input, expected string) *configurator.Output {
	t.Helper()
	output, err := configurator.Call(handler, input)
	if err != nil {
		t.Fatal(err)
	}
	if output.String() != expected {
		t.Errorf("got\n%swant\n%s", output, expected)
	}
	return output
}

func TestRootAsksForEachNamespaceOnce(t *testing.T) {
	batch := configuratortest.Batch(deployment("shop", "web"), deployment("shop", "cart"), deployment("ads", "web"))
	check(t, "root", batch, `namespace/ads: kubernetes get namespaces ads, cached, group-by namespaces
namespace/shop: kubernetes get namespaces shop, cached, group-by namespaces
entry/shop/web: config get workload shop/Deployment/web (u-web), group-by entries, of shop/web
entry/shop/cart: config get workload shop/Deployment/cart (u-cart), group-by entries, of shop/cart
entry/ads/web: config get workload ads/Deployment/web (u-web), group-by entries, of ads/web
`)
}

func TestWriteSummarisesEachDeploymentOverItsNamespace(t *testing.T) {
	input := configuratortest.Batch(deployment("shop", "web"))
	annotations := object{"config.configurator.dev/tier": "tin", "config.configurator.dev/zone": "a"}
	input.Results = configurator.Results{
		configuratortest.Group("namespaces", namespace("shop", annotations)),
		configuratortest.Group("entries", absent("web")),
	}
	check(t, "write", input, `config/shop/web: config update workload shop/Deployment/web (u-web) = `+
		`{"replicas":2,"serviceAccount":"web","containers":[{"name":"server","image":"registry.example.com/web:1",`+
		`"ports":[8080],"env":["PORT","TOKEN"]}],"config":{"tier":"gold","zone":"a"}}, of shop/web
`)
}

func TestADeploymentThatSaysLittleHasDefaults(t *testing.T) {
	bare := object{
		"metadata": object{"namespace": "shop", "name": "bare", "uid": "u"},
		"spec":     object{"replicas": nil, "template": object{"spec": object{"containers": []any{object{"name": "a"}}}}},
	}
	check(t, "write", configuratortest.Batch(bare), `config/shop/bare: config update workload shop/Deployment/bare (u) = `+
		`{"replicas":1,"serviceAccount":"default","containers":[{"name":"a","image":"","ports":[],"env":[]}],"config":{}}, of shop/bare
`)
}

func TestOnlyWhatHasChangedIsWritten(t *testing.T) {
	batch := func() *configurator.Input {
		return configuratortest.Batch(deployment("shop", "web"), deployment("shop", "cart"), deployment("shop", "ads"))
	}
	first, err := configurator.Call("write", batch())
	if err != nil {
		t.Fatal(err)
	}
	value := func(i int) string {
		return *first.Requests[i].Operation.(configurator.ConfigResourceOperation).Value
	}
	second := batch()
	second.Results = configurator.Results{
		configuratortest.Group("entries", entry("web", value(0)), entry("cart", "{}"), entry("ads", value(2))),
	}
	output, err := configurator.Call("write", second)
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	for _, request := range output.Requests {
		written = append(written, request.Of.Name)
	}
	if !slices.Equal(written, []string{"cart"}) {
		t.Errorf("got %q", written)
	}
}

func TestANamespaceThatCannotBeReadIsNotTakenForAbsent(t *testing.T) {
	call := func(kind configurator.ErrorKind) error {
		input := configuratortest.Batch(deployment("shop", "web"))
		failed := configuratortest.Failed("namespace/shop", configurator.SinkKubernetes, kind, "no answer")
		input.Results = configurator.Results{configuratortest.Group("namespaces", failed)}
		_, err := configurator.Call("write", input)
		return err
	}
	var failure *configurator.HandlerError
	if err := call(configurator.APIServerUnavailable); !errors.As(err, &failure) || failure.Fatal {
		t.Errorf("got %v", err)
	}
	if err := call(configurator.ResourceNotFound); err != nil {
		t.Error(err)
	}
}

func TestCleanupNeedsNothingButTheIdentity(t *testing.T) {
	gone := object{"metadata": object{"namespace": "shop", "name": "web", "uid": "u-web"}}
	check(t, "cleanup", configuratortest.Batch(gone), "config/shop/web: config delete workload shop/Deployment/web (u-web), of shop/web\n")
}

func TestWhatIsNoDeploymentIsRefused(t *testing.T) {
	for _, one := range []object{{}, {"metadata": object{"namespace": "shop", "name": 7, "uid": "u"}}, {"metadata": object{"namespace": "shop", "name": "web", "uid": "u"}}} {
		var failure *configurator.HandlerError
		if _, err := configurator.Call("write", configuratortest.Batch(one)); !errors.As(err, &failure) || !failure.Fatal {
			t.Errorf("%v: got %v", one, err)
		}
	}
}
