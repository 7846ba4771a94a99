package conformance

import (
	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configstore"
	"configurator.dev/sdk/kubernetes"
)

// Tells what is planned, gives each object a label, and removes what is called `old`.
func plan(input *configurator.Input) (*configurator.Output, error) {
	output := configurator.NewOutput()
	if input.Plan == nil {
		return output.Pass("is-planned", false), nil
	}
	seen := []string{}
	for _, request := range input.Plan.Requests {
		seen = append(seen, "request "+request.Name)
		if request.Name == "old" {
			output.RemoveFromPlan("old")
			continue
		}
		output.Request(request)
	}
	if planned := input.Plan.Desired; planned != nil {
		set := *planned
		set.Entries = nil
		for _, entry := range planned.Entries {
			seen = append(seen, "entry "+entry.Name)
			if entry.Name == "old" {
				output.RemoveFromPlan("old")
				continue
			}
			if content, is := entry.Content.(configurator.KubernetesContent); is {
				labelled, err := labelled(content.Object)
				if err != nil {
					return nil, err
				}
				entry.Content = kubernetes.Content(labelled)
			}
			set.Entry(entry)
		}
		output.Desired = &set
	}
	return output.Pass("seen", seen), nil
}

// The object with the label `planned`.
func labelled(document any) (object, error) {
	text, err := configurator.JSONOf(document)
	if err != nil {
		return nil, err
	}
	var read object
	if err := text.Read(&read); err != nil {
		return nil, err
	}
	metadata, is := read["metadata"].(object)
	if !is {
		return nil, configurator.Fatal("the object has no metadata")
	}
	labels, is := metadata["labels"].(object)
	if !is {
		labels = object{}
		metadata["labels"] = labels
	}
	labels["planned"] = "yes"
	return read, nil
}

// Reads before it plans.
func planReads(input *configurator.Input) (*configurator.Output, error) {
	output := configurator.NewOutput()
	if answer := input.Answer("class"); answer != nil {
		return output.Pass("found", answer.Error == nil), nil
	}
	return output.Read(
		configurator.Request{Name: "class", Operation: configstore.Basic("class").Get(), OnError: configurator.OnErrorCatch},
		configurator.Request{Name: "pods", Operation: kubernetes.Pod.List("shop")},
	), nil
}
