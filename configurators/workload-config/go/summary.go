package workloadconfig

import (
	"strings"

	configurator "configurator.dev/sdk"
)

// What the key of an annotation begins with, to be configuration.
const prefix = "config.configurator.dev/"

// What is stored of a Deployment, over the annotations of its Namespace. The same Deployment and Namespace give the same text.
func summaryOf(deployment configurator.JSON, namespaceAnnotations configurator.Value) (configurator.JSON, error) {
	pod := deployment.At("spec", "template", "spec")
	if pod.Kind() != configurator.KindObject {
		return "", configurator.Fatal("the object is no Deployment: it has no spec.template.spec")
	}
	replicas := int64(1)
	if given := deployment.At("spec", "replicas"); given.Kind() == configurator.KindNumber {
		replicas = given.Int()
	}
	account := "default"
	if given := pod.At("serviceAccountName"); given.Kind() == configurator.KindText {
		account = given.Text()
	}
	containers := []configurator.Object{}
	for container := range pod.At("containers").Items() {
		summary, err := containerOf(container)
		if err != nil {
			return "", err
		}
		containers = append(containers, summary)
	}
	config := map[string]string{}
	for _, annotations := range []configurator.Value{namespaceAnnotations, deployment.At("metadata", "annotations")} {
		for name, value := range annotations.Members() {
			if key, is := strings.CutPrefix(name, prefix); is {
				config[key] = value.Text()
			}
		}
	}
	return configurator.JSONOf(configurator.Object{}.
		With("replicas", replicas).
		With("serviceAccount", account).
		With("containers", containers).
		With("config", config))
}

// Of the environment only the names: values may be secrets.
func containerOf(container configurator.Value) (configurator.Object, error) {
	name, err := text(container, "container", "name")
	if err != nil {
		return nil, err
	}
	ports := []int{}
	for port := range container.At("ports").Items() {
		ports = append(ports, int(port.At("containerPort").Int()))
	}
	environment := []string{}
	for variable := range container.At("env").Items() {
		environment = append(environment, variable.At("name").Text())
	}
	return configurator.Object{}.
		With("name", name).
		With("image", container.At("image").Text()).
		With("ports", ports).
		With("env", environment), nil
}
