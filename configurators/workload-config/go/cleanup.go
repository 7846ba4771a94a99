package workloadconfig

import configurator "configurator.dev/sdk"

// Deletes the entry of each Deployment of the batch. That of a newer Deployment of the same name has another uid, and stays.
func cleanup(input *configurator.Input) (*configurator.Output, error) {
	output := configurator.NewOutput()
	for _, watched := range input.Objects {
		id, err := identityOf(watched.JSON)
		if err != nil {
			return nil, err
		}
		output.Request(configurator.Request{Name: id.request("config"), Operation: id.entry().Delete(), Of: id.ref()})
	}
	return output, nil
}
