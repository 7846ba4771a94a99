// Package configstore makes requests to the config store. A request names only the leaf: the host keeps the layers above it. Deleting
// what is absent is success.
//
//	pod := configstore.Pod("shop", "web-1").UID("6e2d")
//	write := configstore.Transaction(
//		pod.Update(`{"tier":"gold"}`),
//		configstore.AppConf("web-1", "tier").Namespace("shop").Update("gold"),
//		configstore.TwoLayers("shop/web", "web-1").Create("6e2d"),
//	)
package configstore

import configurator "configurator.dev/sdk"

// Entry is the configuration of one cluster resource.
type Entry struct {
	operation configurator.ConfigResourceOperation
}

// Pod is the entry of a Pod.
func Pod(namespace, name string) Entry {
	return Entry{configurator.ConfigResourceOperation{Type: configurator.ConfigPod, Namespace: namespace, Name: name}}
}

// Node is the entry of a Node.
func Node(name string) Entry {
	return Entry{configurator.ConfigResourceOperation{Type: configurator.ConfigNode, Name: name}}
}

// Namespace is the entry of a Namespace.
func Namespace(name string) Entry {
	return Entry{configurator.ConfigResourceOperation{Type: configurator.ConfigNamespace, Name: name}}
}

// Workload is the entry of a workload of this kind: Deployment, StatefulSet and the like.
func Workload(namespace, kind, name string) Entry {
	return Entry{configurator.ConfigResourceOperation{
		Type: configurator.ConfigWorkload, Namespace: namespace, WorkloadKind: kind, Name: name,
	}}
}

// UID is the resource's. A write then replaces the entry of an older uid and what hangs on it; Get finds only this uid.
func (e Entry) UID(uid string) Entry {
	e.operation.UID = uid
	return e
}

// Get reads the entry: {"key", "uid"?, "value"}.
func (e Entry) Get() configurator.ConfigOperation { return e.with(configurator.ConfigGet, nil) }

// Create writes the entry unless it exists; one that exists is success.
func (e Entry) Create(value string) configurator.ConfigOperation {
	return e.with(configurator.ConfigCreate, &value)
}

// Update writes the entry.
func (e Entry) Update(value string) configurator.ConfigOperation {
	return e.with(configurator.ConfigUpdate, &value)
}

// Delete removes the entry and what hangs on it.
func (e Entry) Delete() configurator.ConfigOperation { return e.with(configurator.ConfigDelete, nil) }

// Content is the entry as an entry of a set, with this value.
func (e Entry) Content(value string) configurator.ConfigContent {
	return configurator.ConfigContent{Value: value, Key: configurator.ConfigResourceKey{
		Type: e.operation.Type, Name: e.operation.Name, UID: e.operation.UID,
		Namespace: e.operation.Namespace, WorkloadKind: e.operation.WorkloadKind,
	}}
}

func (e Entry) with(verb configurator.ConfigVerb, value *string) configurator.ConfigOperation {
	e.operation.Verb, e.operation.Value = verb, value
	return e.operation
}

// AppConfKey is one key of the application configuration that belongs to a Pod and is deleted with its entry.
type AppConfKey struct{ operation configurator.AppConfOperation }

// AppConf is a key of this Pod, in the namespace of the object being handled.
func AppConf(pod, key string) AppConfKey {
	return AppConfKey{configurator.AppConfOperation{Pod: pod, Key: key}}
}

// Namespace is the Pod's namespace, where it is not that of the object being handled.
func (a AppConfKey) Namespace(namespace string) AppConfKey {
	a.operation.Namespace = namespace
	return a
}

// Create writes the key unless it exists; one that exists is success.
func (a AppConfKey) Create(value string) configurator.ConfigOperation {
	return a.with(configurator.ConfigCreate, &value)
}

// Update writes the key.
func (a AppConfKey) Update(value string) configurator.ConfigOperation {
	return a.with(configurator.ConfigUpdate, &value)
}

// Delete removes the key.
func (a AppConfKey) Delete() configurator.ConfigOperation {
	return a.with(configurator.ConfigDelete, nil)
}

// Content is the key as an entry of a set, with this value.
func (a AppConfKey) Content(value string) configurator.ConfigContent {
	return configurator.ConfigContent{Value: value, Key: configurator.AppConfKey{
		Pod: a.operation.Pod, Namespace: a.operation.Namespace, Key: a.operation.Key,
	}}
}

func (a AppConfKey) with(verb configurator.ConfigVerb, value *string) configurator.ConfigOperation {
	a.operation.Verb, a.operation.Value = verb, value
	return a.operation
}

// Basic is a key by itself.
type Basic string

// Get reads the key: {"key", "value"}.
func (b Basic) Get() configurator.ConfigOperation { return b.with(configurator.ConfigGet, nil) }

// Put writes the key.
func (b Basic) Put(value string) configurator.ConfigOperation {
	return b.with(configurator.ConfigPut, &value)
}

// Delete removes the key.
func (b Basic) Delete() configurator.ConfigOperation { return b.with(configurator.ConfigDelete, nil) }

// Content is the key as an entry of a set, with this value.
func (b Basic) Content(value string) configurator.ConfigContent {
	return configurator.ConfigContent{Value: value, Key: configurator.BasicKey(b)}
}

func (b Basic) with(verb configurator.ConfigVerb, value *string) configurator.ConfigOperation {
	return configurator.BasicOperation{Verb: verb, Key: string(b), Value: value}
}

// Leaf is one under two levels of path, which the host makes and removes.
type Leaf struct {
	operation configurator.TwoLayersOperation
}

// TwoLayers is the leaf third under second.
func TwoLayers(second, third string) Leaf {
	return Leaf{configurator.TwoLayersOperation{Second: second, Third: third}}
}

// Get reads the leaf: {"key", "value"}.
func (l Leaf) Get() configurator.ConfigOperation { return l.with(configurator.ConfigGet, nil) }

// Create writes the leaf unless it exists; one that exists is success.
func (l Leaf) Create(value string) configurator.ConfigOperation {
	return l.with(configurator.ConfigCreate, &value)
}

// Update writes the leaf.
func (l Leaf) Update(value string) configurator.ConfigOperation {
	return l.with(configurator.ConfigUpdate, &value)
}

// Delete removes the leaf.
func (l Leaf) Delete() configurator.ConfigOperation { return l.with(configurator.ConfigDelete, nil) }

// Content is the leaf as an entry of a set, with this value.
func (l Leaf) Content(value string) configurator.ConfigContent {
	return configurator.ConfigContent{Value: value, Key: configurator.TwoLayersKey{
		Second: l.operation.Second, Third: l.operation.Third,
	}}
}

func (l Leaf) with(verb configurator.ConfigVerb, value *string) configurator.ConfigOperation {
	l.operation.Verb, l.operation.Value = verb, value
	return l.operation
}

// Transaction is all of these operations, or none.
func Transaction(operations ...configurator.ConfigOperation) configurator.Operation {
	return configurator.TransactionOperation{Operations: operations}
}
