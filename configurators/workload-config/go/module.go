// Package workloadconfig configures Deployments in batches. It is the configurator of the folder above in Go: the same requests of the same
// objects.
//
//	phase       handler   does, for a whole batch
//	root        root      asks for each Namespace once, and for the entry of each Deployment
//	write       write     writes the entries that have changed
//	(deletion)  cleanup   deletes the entries
package workloadconfig

import configurator "configurator.dev/sdk"

func init() {
	configurator.Register(
		configurator.Handler{
			Name: "root", Run: root, Accepts: configurator.AcceptsBatch,
			Description: "Asks for the Namespaces and stored configuration of Deployments.",
		},
		configurator.Handler{
			Name: "write", Run: write, Accepts: configurator.AcceptsBatch,
			Description: "Writes the configuration of Deployments that has changed.",
		},
		configurator.Handler{
			Name: "cleanup", Run: cleanup, Accepts: configurator.AcceptsBatch,
			Description: "Deletes the configuration of Deployments that are gone.",
		},
	)
}
