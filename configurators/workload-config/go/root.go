package workloadconfig

import (
	"maps"
	"slices"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/kubernetes"
)

// The keys under which results arrive together.
const (
	// The Namespaces, each once.
	namespaces = "namespaces"
	// The stored entries, one for each Deployment.
	entries = "entries"
)

// The name of the request for a Namespace.
func namespaceRequest(name string) string { return "namespace/" + name }

// Asks for each Namespace of the batch once, and for the entry of each Deployment. Failures join their groups: an entry that is absent is
// the ordinary case of a new Deployment.
func root(input *configurator.Input) (*configurator.Output, error) {
	seen := map[string]bool{}
	asked := make([]configurator.Request, 0, len(input.Objects))
	for _, watched := range input.Objects {
		id, err := identityOf(watched.JSON)
		if err != nil {
			return nil, err
		}
		seen[id.namespace] = true
		asked = append(asked, configurator.Request{
			Name: id.request("entry"), Operation: id.entry().Get(), GroupBy: entries, Of: id.ref(),
		})
	}
	output := &configurator.Output{Requests: make([]configurator.Request, 0, len(seen)+len(asked))}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		output.Request(configurator.Request{
			Name: namespaceRequest(name), Operation: kubernetes.Namespace.Get("", name, kubernetes.Cached()), GroupBy: namespaces,
		})
	}
	return output.Request(asked...), nil
}
