package hello

import (
	"errors"
	"testing"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configuratortest"
)

func TestANamespaceGetsItsConfigMap(t *testing.T) {
	namespace := map[string]any{"metadata": map[string]any{"name": "shop"}}
	output, err := configurator.Call("root", configuratortest.Input(namespace))
	if err != nil {
		t.Fatal(err)
	}
	expected := `hello: kubernetes apply configmaps shop/hello ` +
		`{"apiVersion":"v1","data":{"greeting":"hello, shop"},"kind":"ConfigMap",` +
		`"metadata":{"name":"hello","namespace":"shop"}}` + "\n"
	if output.String() != expected {
		t.Errorf("got  %swant %s", output, expected)
	}
}

func TestAnObjectWithoutANameIsRefused(t *testing.T) {
	_, err := configurator.Call("root", configuratortest.Input(map[string]any{}))
	var refusal *configurator.HandlerError
	if !errors.As(err, &refusal) || !refusal.Fatal {
		t.Errorf("got %v", err)
	}
}
