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
	return s.operation(configurator.SecretCreate, given(value))
}

// Update writes a value that the host generates in the place of this version; 0 stands for a secret that is absent. Another version is a
// conflict.
func (s Secret) Update(version uint64) configurator.Operation {
	return configurator.SecretOperation{Name: string(s), Verb: configurator.SecretUpdate, Version: &version}
}

// UpdateWith writes this value in the place of this version; 0 stands for a secret that is absent. Another version is a conflict, unless it
// has the value already. The value nil is null.
func (s Secret) UpdateWith(version uint64, value any) configurator.Operation {
	return configurator.SecretOperation{
		Name: string(s), Verb: configurator.SecretUpdate, Value: given(value), Version: &version,
	}
}

// Content is the secret as an entry of a set, with a value that the host generates once.
func (s Secret) Content() configurator.SecretContent {
	return configurator.SecretContent{Name: string(s)}
}

// ContentWith is the secret as an entry of a set, with this value. The value nil is null.
func (s Secret) ContentWith(value any) configurator.SecretContent {
	return configurator.SecretContent{Name: string(s), Value: given(value)}
}

// Delete removes it. One that is absent is success.
func (s Secret) Delete() configurator.Operation { return s.operation(configurator.SecretDelete, nil) }

func (s Secret) operation(verb configurator.SecretVerb, value any) configurator.Operation {
	return configurator.SecretOperation{Name: string(s), Verb: verb, Value: value}
}

// A value that is there: without one the host would generate it.
func given(value any) any {
	if value == nil {
		return configurator.JSON("null")
	}
	return value
}
