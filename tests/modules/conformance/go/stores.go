package conformance

import (
	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configstore"
	"configurator.dev/sdk/secretstore"
)

func configEntries(*configurator.Input) (*configurator.Output, error) {
	return configurator.NewOutput(
		configurator.Request{Name: "get-pod", Operation: configstore.Pod("shop", "web").Get()},
		configurator.Request{Name: "create-node", Operation: configstore.Node("node-1").Create("a")},
		configurator.Request{Name: "update-namespace", Operation: configstore.Namespace("shop").Update("b")},
		configurator.Request{
			Name: "update-workload", Operation: configstore.Workload("shop", "StatefulSet", "db").UID("4a0f").Update("c"),
		},
		configurator.Request{
			Name: "delete-workload", Operation: configstore.Workload("shop", "Deployment", "web").UID("77").Delete(),
		},
	), nil
}

func configAppConf(*configurator.Input) (*configurator.Output, error) {
	level := configstore.AppConf("web", "log.level")
	return configurator.NewOutput(
		configurator.Request{Name: "create", Operation: level.Create("info")},
		configurator.Request{Name: "update", Operation: level.Namespace("shop").Update("debug")},
		configurator.Request{Name: "delete", Operation: level.Namespace("shop").Delete()},
	), nil
}

func configBasic(*configurator.Input) (*configurator.Output, error) {
	return configurator.NewOutput(
		configurator.Request{Name: "get", Operation: configstore.Basic("region").Get()},
		configurator.Request{Name: "put", Operation: configstore.Basic("region").Put("north")},
		configurator.Request{Name: "delete", Operation: configstore.Basic("a/b c").Delete()},
	), nil
}

func configTwoLayers(*configurator.Input) (*configurator.Output, error) {
	red := configstore.TwoLayers("teams", "red")
	return configurator.NewOutput(
		configurator.Request{Name: "get", Operation: red.Get()},
		configurator.Request{Name: "create", Operation: red.Create("1")},
		configurator.Request{Name: "update", Operation: red.Update("2")},
		configurator.Request{Name: "delete", Operation: red.Delete()},
	), nil
}

func configTransaction(*configurator.Input) (*configurator.Output, error) {
	all := configstore.Transaction(
		configstore.Pod("shop", "web").Update("entry"),
		configstore.AppConf("web", "mode").Namespace("shop").Create("fast"),
		configstore.Basic("count").Put("7"),
		configstore.TwoLayers("teams", "red").Delete(),
	)
	return configurator.NewOutput(configurator.Request{Name: "all", Operation: all}), nil
}

func secrets(*configurator.Input) (*configurator.Output, error) {
	db := secretstore.Secret("db")
	return configurator.NewOutput(
		configurator.Request{Name: "get", Operation: db.Get()},
		configurator.Request{Name: "create", Operation: db.Create()},
		configurator.Request{Name: "create-with", Operation: db.CreateWith(object{"user": "app", "password": `p"w`})},
		configurator.Request{Name: "update", Operation: db.Update(3)},
		configurator.Request{Name: "update-with", Operation: db.UpdateWith(0, "p")},
		configurator.Request{Name: "delete", Operation: db.Delete()},
	), nil
}
