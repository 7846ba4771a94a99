package conformance

import (
	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configstore"
)

// Of each object: a request, a status and an Event.
func batch(input *configurator.Input) (*configurator.Output, error) {
	output := configurator.NewOutput()
	for _, watched := range input.Objects {
		text := func(field string) string { return watched.JSON.At("metadata", field).Text() }
		of := configurator.ObjectRef{Namespace: text("namespace"), Name: text("name")}
		output.Request(configurator.Request{
			Name:      of.Namespace + "/" + of.Name,
			Operation: configstore.Pod(of.Namespace, of.Name).UID(text("uid")).Update("1"),
			Of:        &of,
		})
		output.StatusOf(of, object{"seen": watched.Event.String()})
		output.EventOf(of, configurator.EventNormal, "Seen", of.Name+" was "+watched.Event.String())
	}
	return output, nil
}

func either(input *configurator.Input) (*configurator.Output, error) {
	return configurator.NewOutput().Pass("objects", len(input.Objects)), nil
}
