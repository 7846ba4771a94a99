package conformance

import (
	"time"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configstore"
	"configurator.dev/sdk/http"
	"configurator.dev/sdk/kubernetes"
)

func endpoints(*configurator.Input) (*configurator.Output, error) {
	post := http.Post("https://hooks.example.com/",
		http.Header("content-type", "application/json"), http.Header("x-team", "red"), http.Body([]byte(`{"text":"é"}`)))
	put := http.New("PUT", "http://hooks.example.com:8080/blob", http.Body([]byte{0, 255, 10}))
	return configurator.NewOutput(
		configurator.Request{Name: "get", Operation: http.Get("https://hooks.example.com/a?b=c%20d")},
		configurator.Request{Name: "post", Operation: post},
		configurator.Request{Name: "put", Operation: put},
	), nil
}

func options(*configurator.Input) (*configurator.Output, error) {
	ask := configstore.Basic("key").Get()
	return configurator.NewOutput(
		configurator.Request{Name: "plain", Operation: ask},
		configurator.Request{Name: "declarative", Operation: configstore.Basic("key").Put("1"), Declarative: true},
		configurator.Request{Name: "grouped", Operation: ask, GroupBy: "group"},
		configurator.Request{Name: "bootstrap", Operation: ask, BootstrapDep: true},
		configurator.Request{Name: "of", Operation: ask, Of: &configurator.ObjectRef{Namespace: "shop", Name: "web"}},
		configurator.Request{Name: "fail", Operation: ask, OnError: configurator.OnErrorFail},
		configurator.Request{Name: "catch", Operation: ask, OnError: configurator.OnErrorCatch},
		configurator.Request{Name: "drop", Operation: ask, OnError: configurator.OnErrorDrop},
		configurator.Request{Name: "once", Operation: ask, Once: true},
		configurator.Request{Name: "timeout", Operation: ask, Timeout: 1500 * time.Millisecond},
		configurator.Request{Name: "partition", Operation: ask, Partition: "team-a"},
	), nil
}

func strategy(input *configurator.Input) (*configurator.Output, error) {
	strategy, err := parameter(input, "strategy")
	if err != nil {
		return nil, err
	}
	output := configurator.NewOutput(configurator.Request{Name: "one", Operation: configstore.Basic("key").Get(), GroupBy: "all"})
	switch strategy {
	case "serial":
		output.Strategy, output.BatchErrorStrategy = configurator.Serial, configurator.BatchDropError
	case "parallel":
		output.Strategy, output.BatchErrorStrategy = configurator.Parallel, configurator.BatchCatchError
	}
	return output, nil
}

func graph(*configurator.Input) (*configurator.Output, error) {
	apply := func(name string) configurator.Operation {
		body := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"namespace": "shop", "name": name}}
		return kubernetes.ConfigMap.Apply("shop", name, body)
	}
	output := configurator.NewOutput(
		configurator.Request{Name: "a", Operation: apply("a"), ReadyWhen: configurator.WhenExists()},
		configurator.Request{
			Name: "b", Operation: apply("b"), ReadyWhen: configurator.WhenObserved(), DependsOn: []string{"a"},
		},
		configurator.Request{
			Name: "c", Operation: apply("c"), ReadyWhen: configurator.When("object.data.ready == 'yes'"),
			DependsOn: []string{"a", "b"},
		},
		configurator.Request{
			Name: "d", Operation: apply("d"), ReadyWhen: configurator.WhenHealthy(), DependsOn: []string{"c"},
		},
	)
	output.Strategy = configurator.Graph
	return output, nil
}
