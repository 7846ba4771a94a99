package workloadconfig

import configurator "configurator.dev/sdk"

// Writes the entry of each Deployment of the batch whose summary is not what is stored.
//
// That a Namespace could not be read is an error, which a retry may cure: without it a Deployment would lose a layer.
func write(input *configurator.Input) (*configurator.Output, error) {
	annotations := map[string]configurator.Value{}
	for _, result := range input.GroupOpt(namespaces) {
		namespace, err := result.Found()
		if err != nil {
			return nil, err
		}
		annotations[result.RequestName] = namespace.At("metadata", "annotations")
	}
	stored := map[string]string{}
	for _, result := range input.GroupOpt(entries) {
		// One that cannot be read is written anew.
		if entry, err := result.ObjectJSON(); err == nil {
			stored[result.RequestName] = entry.At("value").Text()
		}
	}
	output := configurator.NewOutput()
	for _, watched := range input.Objects {
		id, err := identityOf(watched.JSON)
		if err != nil {
			return nil, err
		}
		summary, err := summaryOf(watched.JSON, annotations[namespaceRequest(id.namespace)])
		if err != nil {
			return nil, err
		}
		if stored[id.request("entry")] == string(summary) {
			continue
		}
		output.Request(configurator.Request{
			Name: id.request("config"), Operation: id.entry().Update(string(summary)), Of: id.ref(),
		})
	}
	return output, nil
}
