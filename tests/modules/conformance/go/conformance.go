// Package conformance is what every SDK must be able to say and read, in Go. What each handler does is in the folder above.
package conformance

import (
	"fmt"

	configurator "configurator.dev/sdk"
)

type object = map[string]any

type list = []any

func init() {
	configurator.Register(
		configurator.Handler{Name: "kubernetes-reads", Run: kubernetesReads, Description: "Gets and lists."},
		configurator.Handler{Name: "kubernetes-writes", Run: kubernetesWrites, Description: "Creates, replaces and applies."},
		configurator.Handler{Name: "kubernetes-patches", Run: kubernetesPatches, Description: "Patches of every type."},
		configurator.Handler{Name: "kubernetes-deletes", Run: kubernetesDeletes, Description: "Deletes of every policy."},
		configurator.Handler{Name: "kubernetes-types", Run: kubernetesTypes, Description: "Every type that the SDK names."},
		configurator.Handler{Name: "config-entries", Run: configEntries, Description: "Entries of every type."},
		configurator.Handler{Name: "config-app-conf", Run: configAppConf, Description: "Application configuration."},
		configurator.Handler{Name: "config-basic", Run: configBasic, Description: "Plain keys."},
		configurator.Handler{Name: "config-two-layers", Run: configTwoLayers, Description: "Leaves under two levels."},
		configurator.Handler{Name: "config-transaction", Run: configTransaction, Description: "All or nothing."},
		configurator.Handler{
			Name: "secrets", Run: secrets, Description: "Secrets.",
			Capabilities: object{"secretstore": list{object{"names": list{"*"}, "verbs": list{"get", "create", "update", "delete"}}}},
		},
		configurator.Handler{Name: "http", Run: endpoints, Description: "HTTP endpoints."},
		configurator.Handler{Name: "options", Run: options, Description: "What every request can have."},
		configurator.Handler{Name: "strategy", Run: strategy, Description: "Orders of execution."},
		configurator.Handler{Name: "graph", Run: graph, Description: "Requests that depend on one another."},
		configurator.Handler{Name: "object", Run: handOn, Description: "Hands the object on, read and untouched."},
		configurator.Handler{Name: "numbers", Run: numbers, Description: "Reads numbers."},
		configurator.Handler{Name: "unicode", Run: unicode, Description: "Texts of all kinds."},
		configurator.Handler{Name: "deep", Run: deep, Description: "A deep document."},
		configurator.Handler{Name: "large", Run: large, Description: "A large document."},
		configurator.Handler{Name: "results", Run: results, Description: "Reads results."},
		configurator.Handler{Name: "groups", Run: groups, Description: "Reads groups of results."},
		configurator.Handler{
			Name: "reads", Run: reads, Description: "Reads in one of several ways.", Accepts: configurator.AcceptsEither,
		},
		configurator.Handler{Name: "nested-json", Run: nestedJSON, Description: "Puts a document into another."},
		configurator.Handler{Name: "arguments", Run: arguments, Description: "Reads and hands on arguments."},
		configurator.Handler{Name: "context", Run: context, Description: "Reads the facts of the call."},
		configurator.Handler{
			Name: "state", Run: state, Description: "Reads what it left behind.", View: configurator.ViewCheckList,
		},
		configurator.Handler{Name: "statuses", Run: statuses, Description: "Statuses and Events."},
		configurator.Handler{
			Name: "error", Run: fail, Description: "Errors of all kinds.", ParametersSchema: object{"type": "object"},
		},
		configurator.Handler{Name: "panic", Run: mistake, Description: "Fails as no handler should."},
		configurator.Handler{
			Name: "outcome", Run: outcome, Description: "Every way to end.", View: configurator.ViewObjectDetail,
		},
		configurator.Handler{Name: "desired", Run: desired, Description: "All that an owner is to have."},
		configurator.Handler{Name: "plan", Run: plan, Description: "Changes the plan of a pipeline."},
		configurator.Handler{Name: "plan-reads", Run: planReads, Description: "Reads before it plans."},
		configurator.Handler{Name: "extension", Run: extensions, Description: "Requests to an extension."},
		configurator.Handler{Name: "log", Run: lines, Description: "Logs at every level."},
		configurator.Handler{Name: "clock", Run: clock, Description: "The language's clock."},
		configurator.Handler{Name: "chance", Run: chance, Description: "Numbers made of the seed."},
		configurator.Handler{Name: "random", Run: random, Description: "A number by the language's generator."},
		configurator.Handler{
			Name: "batch", Run: batch, Description: "Something for each object.", Accepts: configurator.AcceptsBatch,
		},
		configurator.Handler{Name: "either", Run: either, Description: "Counts objects.", Accepts: configurator.AcceptsEither},
	)
}

// A text of the parameters.
func parameter(input *configurator.Input, name string) (string, error) {
	found := input.Context.Parameters.At(name)
	if found.Kind() != configurator.KindText {
		return "", configurator.Fatal(fmt.Sprintf("there is no parameter %s", name))
	}
	return found.Text(), nil
}
