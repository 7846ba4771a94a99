package conformance

import (
	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/extension"
)

func extensions(*configurator.Input) (*configurator.Output, error) {
	dns := extension.Extension("dns")
	upsert := dns.RequestWith("upsert", "example.org/é", object{"a": list{"192.0.2.1"}})
	return configurator.NewOutput(
		configurator.Request{Name: "delete", Operation: dns.Request("delete", "example.org/www")},
		configurator.Request{Name: "upsert", Operation: upsert},
	), nil
}
