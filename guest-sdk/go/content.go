package configurator

// Content is the member that an entry of a set stands for: a [KubernetesContent], a [ConfigContent] or a [SecretContent]. The functions
// and methods called Content of the packages kubernetes, configstore and secretstore make it.
type Content interface{ isContent() }

// KubernetesContent is a Kubernetes object.
type KubernetesContent struct {
	// Object has apiVersion, kind and metadata.name. It is a value that [JSONOf] can write; in a plan, a [JSON].
	Object any
}

// ConfigContent is the value of a key of the config store.
type ConfigContent struct {
	Key   ConfigKey
	Value string
	// Partition is as in a [Request].
	Partition string
}

// SecretContent is a secret of the secret store.
type SecretContent struct {
	Name string
	// Value is one that [JSONOf] can write; in a plan, a [JSON]. nil: the host generates a value once, and it stays.
	Value any
	// Partition is as in a [Request].
	Partition string
}

// InPartition returns the content in the partition of this namespace. Default: the Configurator's own partition.
func (c ConfigContent) InPartition(namespace string) ConfigContent {
	c.Partition = namespace
	return c
}

// InPartition returns the content in the partition of this namespace. Default: the Configurator's own partition.
func (c SecretContent) InPartition(namespace string) SecretContent {
	c.Partition = namespace
	return c
}

// ConfigKey is a leaf of the config store: a [ConfigResourceKey], an [AppConfKey], a [BasicKey] or a [TwoLayersKey]. The host keeps the
// layers above it.
type ConfigKey interface{ isConfigKey() }

// ConfigResourceKey is the configuration of one cluster resource.
type ConfigResourceKey struct {
	Type ConfigType
	Name string
	// UID, if given, replaces an entry of another uid, with what hangs on it.
	UID string
	// Namespace is for pods and workloads, WorkloadKind for workloads: Deployment, StatefulSet and the like.
	Namespace, WorkloadKind string
}

// AppConfKey is one key of the application configuration that belongs to a Pod.
type AppConfKey struct {
	Pod string
	// Namespace is empty for that of the owner.
	Namespace, Key string
}

// BasicKey is a plain key.
type BasicKey string

// TwoLayersKey is a leaf under two levels of path.
type TwoLayersKey struct{ Second, Third string }

func (KubernetesContent) isContent() {}
func (ConfigContent) isContent()     {}
func (SecretContent) isContent()     {}

func (ConfigResourceKey) isConfigKey() {}
func (AppConfKey) isConfigKey()        {}
func (BasicKey) isConfigKey()          {}
func (TwoLayersKey) isConfigKey()      {}
