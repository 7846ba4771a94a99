package conformance

import (
	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/kubernetes"
)

var widget = kubernetes.Resource{Group: "example.com", Version: "v1beta1", Plural: "widgets", Kind: "Widget"}

func configMap(name string) object {
	return object{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   object{"namespace": "shop", "name": name},
		"data":       object{"key": "value"},
	}
}

func kubernetesReads(*configurator.Input) (*configurator.Output, error) {
	selected := kubernetes.Pod.List("",
		kubernetes.Labels("app=web,tier!=cache"), kubernetes.Fields("status.phase=Running"), kubernetes.Cached())
	return configurator.NewOutput(
		configurator.Request{Name: "get", Operation: kubernetes.Pod.Get("shop", "web")},
		configurator.Request{Name: "get-cached", Operation: kubernetes.Node.Get("", "node-1", kubernetes.Cached())},
		configurator.Request{
			Name: "get-scale", Operation: kubernetes.Deployment.Get("shop", "web", kubernetes.Subresource("scale")),
		},
		configurator.Request{Name: "list", Operation: kubernetes.Pod.List("shop")},
		configurator.Request{Name: "list-selected", Operation: selected},
	), nil
}

func kubernetesWrites(*configurator.Input) (*configurator.Output, error) {
	status := object{
		"apiVersion": widget.APIVersion(),
		"kind":       "Widget",
		"metadata":   object{"namespace": "shop", "name": "w"},
		"status":     object{"ready": true},
	}
	return configurator.NewOutput(
		configurator.Request{Name: "create", Operation: kubernetes.ConfigMap.Create("shop", "a", configMap("a"))},
		configurator.Request{
			Name: "create-new", Operation: kubernetes.ConfigMap.Create("shop", "b", configMap("b"), kubernetes.MustNotExist()),
		},
		configurator.Request{
			Name: "replace",
			Operation: kubernetes.ConfigMap.Replace("shop", "c", configMap("c"),
				kubernetes.UID("4a0f"), kubernetes.ResourceVersion("17")),
		},
		configurator.Request{Name: "apply", Operation: kubernetes.ConfigMap.Apply("shop", "d", configMap("d"))},
		configurator.Request{
			Name: "apply-status",
			Operation: widget.Apply("shop", "w", status,
				kubernetes.Force(), kubernetes.Subresource("status"), kubernetes.UID("77")),
		},
	), nil
}

func kubernetesPatches(*configurator.Input) (*configurator.Output, error) {
	merge := object{"data": object{"key": nil}}
	json := list{object{"op": "add", "path": "/data/new", "value": "1"}}
	containers := list{object{"name": "web", "image": "web:2"}}
	strategic := object{"spec": object{"template": object{"spec": object{"containers": containers}}}}
	return configurator.NewOutput(
		configurator.Request{Name: "merge", Operation: kubernetes.ConfigMap.Patch("shop", "a", merge)},
		configurator.Request{
			Name: "json-patch",
			Operation: kubernetes.ConfigMap.Patch("shop", "a", json,
				kubernetes.PatchType(configurator.PatchJSON), kubernetes.ResourceVersion("9")),
		},
		configurator.Request{
			Name: "strategic",
			Operation: kubernetes.Deployment.Patch("shop", "web", strategic,
				kubernetes.PatchType(configurator.PatchStrategic), kubernetes.UID("4a0f")),
		},
		configurator.Request{
			Name: "status",
			Operation: kubernetes.Deployment.Patch("shop", "web", object{"status": object{"replicas": 0}},
				kubernetes.PatchType(configurator.PatchMerge), kubernetes.Subresource("status")),
		},
	), nil
}

func kubernetesDeletes(*configurator.Input) (*configurator.Output, error) {
	return configurator.NewOutput(
		configurator.Request{Name: "delete", Operation: kubernetes.Pod.Delete("shop", "web")},
		configurator.Request{
			Name: "foreground",
			Operation: kubernetes.Deployment.Delete("shop", "web",
				kubernetes.Propagation(configurator.PropagationForeground)),
		},
		configurator.Request{
			Name: "orphan",
			Operation: kubernetes.Deployment.Delete("shop", "old",
				kubernetes.Propagation(configurator.PropagationOrphan), kubernetes.UID("4a0f")),
		},
		configurator.Request{
			Name: "background",
			Operation: kubernetes.Namespace.Delete("", "shop",
				kubernetes.Propagation(configurator.PropagationBackground), kubernetes.ResourceVersion("3")),
		},
	), nil
}

func kubernetesTypes(*configurator.Input) (*configurator.Output, error) {
	output := configurator.NewOutput()
	for _, resource := range []kubernetes.Resource{
		kubernetes.Pod, kubernetes.Node, kubernetes.Namespace, kubernetes.ConfigMap, kubernetes.Secret, kubernetes.Service,
		kubernetes.Deployment, kubernetes.ReplicaSet, kubernetes.StatefulSet, kubernetes.DaemonSet, kubernetes.Job,
		kubernetes.CronJob, widget,
	} {
		output.Request(configurator.Request{Name: resource.Kind, Operation: resource.Get("shop", "one")})
	}
	return output, nil
}
