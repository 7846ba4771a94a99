// Package extension makes requests to sinks that the embedder of the host adds.
//
//	extension.Extension("dns").RequestWith("upsert", "example.org/www", map[string]any{"a": "192.0.2.1"})
package extension

import configurator "configurator.dev/sdk"

// Extension is an extension, by its name. A host without it refuses a request with UnsupportedResourceOperation.
type Extension string

// Request does what the verb of the extension says to this target.
func (e Extension) Request(verb, target string) configurator.Operation {
	return configurator.ExtensionOperation{Extension: string(e), Verb: verb, Target: target}
}

// RequestWith is as Request, with a body: a value that [configurator.JSONOf] can write. The body nil is null.
func (e Extension) RequestWith(verb, target string, body any) configurator.Operation {
	// A body of nil would be left out.
	if body == nil {
		body = configurator.JSON("null")
	}
	return configurator.ExtensionOperation{Extension: string(e), Verb: verb, Target: target, Body: body}
}
