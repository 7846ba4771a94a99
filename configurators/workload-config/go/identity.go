package workloadconfig

import (
	"strings"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configstore"
)

// What every object has, also one of which nothing else is known.
type identity struct{ namespace, name, uid string }

func identityOf(object configurator.JSON) (identity, error) {
	metadata := object.At("metadata")
	var texts [3]string
	for i, field := range []string{"namespace", "name", "uid"} {
		var err error
		if texts[i], err = text(metadata, "metadata", field); err != nil {
			return identity{}, err
		}
	}
	return identity{texts[0], texts[1], texts[2]}, nil
}

// A text that must be there.
func text(object configurator.Value, what, field string) (string, error) {
	found := object.At(field)
	if found.Kind() != configurator.KindText {
		return "", configurator.Fatal("the object's " + what + " has no text " + field)
	}
	return found.Text(), nil
}

func (i identity) ref() *configurator.ObjectRef {
	return &configurator.ObjectRef{Namespace: i.namespace, Name: i.name}
}

// Its entry in the config store.
func (i identity) entry() configstore.Entry {
	return configstore.Workload(i.namespace, "Deployment", i.name).UID(i.uid)
}

// The name of a request about it: no two of a batch share one, because no two objects share namespace and name.
func (i identity) request(what string) string {
	return strings.Join([]string{what, i.namespace, i.name}, "/")
}
