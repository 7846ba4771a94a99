// Package hello gives every Namespace a ConfigMap `hello`.
package hello

import (
	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/kubernetes"
)

func init() {
	configurator.Register(configurator.Handler{
		Name: "root", Run: root, Description: "Gives a Namespace its ConfigMap.",
	})
}

func root(input *configurator.Input) (*configurator.Output, error) {
	name := input.ObjectJSON().At("metadata", "name").Text()
	if name == "" {
		return nil, configurator.Fatal("the object has no name")
	}
	hello := map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"namespace": name, "name": "hello"},
		"data":       map[string]any{"greeting": "hello, " + name},
	}
	return configurator.NewOutput(configurator.Request{
		Name:      "hello",
		Operation: kubernetes.ConfigMap.Apply(name, "hello", hello),
	}), nil
}
