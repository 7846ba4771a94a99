package configurator

// Operation is what a request does: one of the types below, which the packages kubernetes, configstore, secretstore, http and extension
// make.
type Operation interface{ isOperation() }

// KubernetesOperation is one at the Kubernetes API.
type KubernetesOperation struct {
	// Group is empty for the core group. Namespace is empty for a cluster-scoped resource, or to list all namespaces.
	Group, Version, Plural, Kind, Namespace, Name string
	Verb                                          KubernetesVerb
	Subresource, FieldSelector, LabelSelector     string
	// Body is a value that [JSONOf] can write; nil: none.
	Body      any
	PatchType PatchType
	// MustNotExist: for create, an object that exists is a conflict. Default: it is success, and the result.
	MustNotExist  bool
	Force, Cached bool
	Propagation   PropagationPolicy
	// UID and ResourceVersion: where given, a conflict unless the stored object has them.
	UID, ResourceVersion string
}

// KubernetesVerb is what is done with an object.
type KubernetesVerb uint8

// What is done with an object.
const (
	KubernetesGet KubernetesVerb = iota
	KubernetesList
	KubernetesPatch
	KubernetesDelete
	KubernetesCreate
	KubernetesReplace
	KubernetesApply
)

// PatchType is how a patch is written.
type PatchType uint8

// How a patch is written. The default is a merge patch.
const (
	PatchDefault PatchType = iota
	PatchMerge
	PatchJSON
	PatchStrategic
)

// PropagationPolicy is what becomes of the objects that a deleted one owns.
type PropagationPolicy uint8

// What becomes of the objects that a deleted one owns. The default is that they are deleted in the background.
const (
	PropagationDefault PropagationPolicy = iota
	PropagationBackground
	PropagationForeground
	PropagationOrphan
)

// ConfigOperation is one of the config store that a transaction can have.
type ConfigOperation interface {
	Operation
	isConfigOperation()
}

// ConfigVerb is what is done in the config store.
type ConfigVerb uint8

// What is done in the config store. Plain keys are put; all else is created and updated.
const (
	ConfigGet ConfigVerb = iota
	ConfigDelete
	ConfigUpdate
	ConfigCreate
	ConfigPut
)

// ConfigResourceOperation is one on the configuration of a cluster resource.
type ConfigResourceOperation struct {
	Type ConfigType
	Verb ConfigVerb
	Name string
	// UID, where given: a write takes the place of an older uid's entry and what hangs on it; a get finds only this uid.
	UID string
	// Namespace is for pods and workloads, WorkloadKind for workloads.
	Namespace, WorkloadKind string
	Value                   *string
}

// ConfigType is the kind of resource that a configuration is of.
type ConfigType uint8

// The kinds of resource that a configuration is of.
const (
	ConfigPod ConfigType = iota
	ConfigNode
	ConfigNamespace
	ConfigWorkload
)

// AppConfOperation is one on a key of a Pod's application configuration, which goes with the Pod's entry.
type AppConfOperation struct {
	Verb ConfigVerb
	Pod  string
	// Namespace is empty for that of the object being handled.
	Namespace, Key string
	Value          *string
}

// BasicOperation is one on a plain key.
type BasicOperation struct {
	Verb  ConfigVerb
	Key   string
	Value *string
}

// TwoLayersOperation is one on a leaf under two levels of path.
type TwoLayersOperation struct {
	Verb          ConfigVerb
	Second, Third string
	Value         *string
}

// TransactionOperation is all of these operations, or none.
type TransactionOperation struct{ Operations []ConfigOperation }

// SecretOperation is one at the secret store.
type SecretOperation struct {
	Name string
	Verb SecretVerb
	// Value is one that [JSONOf] can write, for create and update; nil: the host generates one.
	Value any
	// Version is for update, where it is required: the version that is stored. Another one is a conflict. 0: there is none.
	Version *uint64
}

// SecretVerb is what is done with a secret.
type SecretVerb uint8

// What is done with a secret.
const (
	SecretGet SecretVerb = iota
	SecretCreate
	SecretUpdate
	SecretDelete
)

// HTTPOperation is a request to an HTTP endpoint.
type HTTPOperation struct {
	Method, URL string
	// Headers are names with their values, sent in this order.
	Headers [][2]string
	// Body is nil where there is none.
	Body []byte
}

// ExtensionOperation is a request to a sink that the embedder of the host adds.
type ExtensionOperation struct {
	// Extension is the name of the extension.
	Extension string
	// Verb is what to do: a word of the extension. Target is what to do it to: an address within the extension.
	Verb, Target string
	// Body is a value that [JSONOf] can write; nil: none.
	Body any
}

func (KubernetesOperation) isOperation()     {}
func (ConfigResourceOperation) isOperation() {}
func (AppConfOperation) isOperation()        {}
func (BasicOperation) isOperation()          {}
func (TwoLayersOperation) isOperation()      {}
func (TransactionOperation) isOperation()    {}
func (SecretOperation) isOperation()         {}
func (HTTPOperation) isOperation()           {}
func (ExtensionOperation) isOperation()      {}

func (ConfigResourceOperation) isConfigOperation() {}
func (AppConfOperation) isConfigOperation()        {}
func (BasicOperation) isConfigOperation()          {}
func (TwoLayersOperation) isConfigOperation()      {}
