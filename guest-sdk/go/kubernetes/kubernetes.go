// Package kubernetes makes requests to the Kubernetes API.
//
//	widget := kubernetes.Resource{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget"}
//	kubernetes.Node.Get("", "worker-1", kubernetes.Cached())
//	kubernetes.Pod.List("shop", kubernetes.Labels("app=web"))
//	kubernetes.ConfigMap.Apply("shop", "web", body, kubernetes.Force())
//	widget.Delete("shop", "old", kubernetes.UID("6e2d"))
package kubernetes

import configurator "configurator.dev/sdk"

// Resource is a kind of object, and where the API serves it. Group is empty for the core group. The namespace of an object of a
// cluster-scoped resource is empty.
type Resource struct{ Group, Version, Plural, Kind string }

// Resources that most clusters have.
var (
	Pod         = Resource{"", "v1", "pods", "Pod"}
	Node        = Resource{"", "v1", "nodes", "Node"}
	Namespace   = Resource{"", "v1", "namespaces", "Namespace"}
	ConfigMap   = Resource{"", "v1", "configmaps", "ConfigMap"}
	Secret      = Resource{"", "v1", "secrets", "Secret"}
	Service     = Resource{"", "v1", "services", "Service"}
	Deployment  = Resource{"apps", "v1", "deployments", "Deployment"}
	ReplicaSet  = Resource{"apps", "v1", "replicasets", "ReplicaSet"}
	StatefulSet = Resource{"apps", "v1", "statefulsets", "StatefulSet"}
	DaemonSet   = Resource{"apps", "v1", "daemonsets", "DaemonSet"}
	Job         = Resource{"batch", "v1", "jobs", "Job"}
	CronJob     = Resource{"batch", "v1", "cronjobs", "CronJob"}
)

// Option is something that differs from an operation's defaults.
type Option func(*configurator.KubernetesOperation)

// Subresource is status, scale and the like.
func Subresource(name string) Option {
	return func(o *configurator.KubernetesOperation) { o.Subresource = name }
}

// Cached, with Get and List: may be answered from the host's watch cache, which can be a moment behind. Default: read at the server. A
// host of this version reads at the server all the same.
func Cached() Option { return func(o *configurator.KubernetesOperation) { o.Cached = true } }

// Labels, with List: only objects whose labels match.
func Labels(selector string) Option {
	return func(o *configurator.KubernetesOperation) { o.LabelSelector = selector }
}

// Fields, with List: only objects whose fields match.
func Fields(selector string) Option {
	return func(o *configurator.KubernetesOperation) { o.FieldSelector = selector }
}

// Force, with Apply: takes fields from other managers. Default: a field of another manager is a conflict.
func Force() Option { return func(o *configurator.KubernetesOperation) { o.Force = true } }

// MustNotExist, with Create: an object that exists is a conflict. Default: it is success, and is the result.
func MustNotExist() Option {
	return func(o *configurator.KubernetesOperation) { o.MustNotExist = true }
}

// UID, with Patch, Replace, Apply and Delete: a conflict unless the stored object has this uid.
func UID(uid string) Option { return func(o *configurator.KubernetesOperation) { o.UID = uid } }

// ResourceVersion, with Patch, Replace, Apply and Delete: a conflict unless the stored object has this resource version.
func ResourceVersion(version string) Option {
	return func(o *configurator.KubernetesOperation) { o.ResourceVersion = version }
}

// PatchType, with Patch: how it is written. Default: as a merge patch.
func PatchType(kind configurator.PatchType) Option {
	return func(o *configurator.KubernetesOperation) { o.PatchType = kind }
}

// Propagation, with Delete: what becomes of the objects that it owns. Default: they are deleted in the background.
func Propagation(policy configurator.PropagationPolicy) Option {
	return func(o *configurator.KubernetesOperation) { o.Propagation = policy }
}

// APIVersion is what an object says in apiVersion: group and version, or only the version in the core group.
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Key names an object for [configurator.Wait], to wait until it changes.
func (r Resource) Key(namespace, name string) configurator.ObjectKey {
	return configurator.ObjectKey{Group: r.Group, Version: r.Version, Plural: r.Plural, Namespace: namespace, Name: name}
}

// Content is an object as an entry of a set: a value with apiVersion, kind and metadata.name that [configurator.JSONOf] can write.
func Content(object any) configurator.KubernetesContent {
	return configurator.KubernetesContent{Object: object}
}

// Get reads one object.
func (r Resource) Get(namespace, name string, options ...Option) configurator.Operation {
	return r.operation(configurator.KubernetesGet, namespace, name, nil, options)
}

// List reads the objects of a namespace; of the whole cluster where it is empty.
func (r Resource) List(namespace string, options ...Option) configurator.Operation {
	return r.operation(configurator.KubernetesList, namespace, "", nil, options)
}

// Create makes an object. One that exists is success, unless MustNotExist is said. A body is a value that [configurator.JSONOf] can write.
func (r Resource) Create(namespace, name string, body any, options ...Option) configurator.Operation {
	return r.operation(configurator.KubernetesCreate, namespace, name, body, options)
}

// Apply is server-side apply: the fields of the body become ours, and those that we had applied before and that are missing now go.
func (r Resource) Apply(namespace, name string, body any, options ...Option) configurator.Operation {
	return r.operation(configurator.KubernetesApply, namespace, name, body, options)
}

// Replace replaces an object as a whole. A custom resource needs its version: in the body, or by ResourceVersion.
func (r Resource) Replace(namespace, name string, body any, options ...Option) configurator.Operation {
	return r.operation(configurator.KubernetesReplace, namespace, name, body, options)
}

// Patch changes parts of an object.
func (r Resource) Patch(namespace, name string, body any, options ...Option) configurator.Operation {
	return r.operation(configurator.KubernetesPatch, namespace, name, body, options)
}

// Delete deletes an object. One that is absent is success.
func (r Resource) Delete(namespace, name string, options ...Option) configurator.Operation {
	return r.operation(configurator.KubernetesDelete, namespace, name, nil, options)
}

func (r Resource) operation(verb configurator.KubernetesVerb, namespace, name string, body any, options []Option) configurator.Operation {
	operation := configurator.KubernetesOperation{
		Group: r.Group, Version: r.Version, Plural: r.Plural, Kind: r.Kind,
		Namespace: namespace, Name: name, Verb: verb, Body: body,
	}
	for _, option := range options {
		option(&operation)
	}
	return operation
}
