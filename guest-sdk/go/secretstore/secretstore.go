// Package secretstore makes requests to the secret store.
//
//	secretstore.Secret("pod-shop-web-1").Create()
package secretstore

import configurator "configurator.dev/sdk"

// Secret is a secret, by its name.
type Secret string

// Get reads it: {"name", "version", "value"}. Keep the value out of log lines, Events and statuses; the host redacts it there, and in
// messages of faults, as a second line of defence.
func (s Secret) Get() configurator.Operation { return s.operation(configurator.SecretGet, nil) }

// Create makes it with a value that the host generates; one that exists is success.
func (s Secret) Create() configurator.Operation { return s.operation(configurator.SecretCreate, nil) }

// CreateWith makes it with this value; one that exists is success and keeps its value. The value nil is null.
func (s Secret) CreateWith(value any) configurator.Operation {
	// Without a value the host would make one up.
	if value == nil {
		value = configurator.JSON("null")
	}
	return s.operation(configurator.SecretCreate, value)
}

// Delete removes it. One that is absent is success.
func (s Secret) Delete() configurator.Operation { return s.operation(configurator.SecretDelete, nil) }

func (s Secret) operation(verb configurator.SecretVerb, value any) configurator.Operation {
	return configurator.SecretOperation{Name: string(s), Verb: verb, Value: value}
}
