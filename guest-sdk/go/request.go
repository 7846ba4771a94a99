package configurator

import "time"

// Request is a wish: what the host is asked to do. What is left out has the contract's default.
type Request struct {
	// Name is that of the request and of its result; no two requests of one output share it, and no GroupBy equals it.
	Name string
	// Operation is what to do: see the packages kubernetes, configstore, secretstore, http and extension.
	Operation Operation
	// Declarative: the phase does not wait for it, and the host retries it by itself until a later one for the same target takes its
	// place. Only for requests that change something.
	Declarative bool
	// GroupBy collects the results of all requests with this key under the key.
	GroupBy string
	// BootstrapDep: the host is not ready until it has succeeded for every object that existed at start.
	BootstrapDep bool
	// Of is, in a batch, the object that it is for: a failure is charged to it alone.
	Of *ObjectRef
	// OnError is what becomes of its failure. Default: the phase fails; with GroupBy, the output's BatchErrorStrategy.
	OnError OnError
	// DependsOn names requests that must be ready first. Only with the strategy Graph.
	DependsOn []string
	// ReadyWhen is when what depends on it may go on. Default: WhenObserved. Only with the strategy Graph.
	ReadyWhen Readiness
	// Once: never sent a second time, even where the answer was lost.
	Once bool
	// Timeout is how long one attempt may take, in whole milliseconds; zero: the sink's, which is 30 s.
	Timeout time.Duration
	// Partition is the namespace whose partition of the config store or the secret store is meant. A Configurator may name its own namespace
	// only, a ClusterConfigurator those that a rule of its capabilities names. Empty: the Configurator's own partition.
	Partition string
}

// OnError is what becomes of a failed request.
type OnError uint8

// What becomes of a failed request. An outage of the Kubernetes API or of a store is neither caught nor dropped: nothing was answered,
// and the run waits.
const (
	OnErrorDefault OnError = iota
	// OnErrorFail: the phase fails with it.
	OnErrorFail
	// OnErrorCatch: the next handler gets its result with Error set. In the last phase a caught failure fails the run.
	OnErrorCatch
	// OnErrorDrop: the next handler gets no result.
	OnErrorDrop
)

// ObjectRef is one object of a batch. Namespace is empty where it has none.
type ObjectRef struct{ Namespace, Name string }

// ObjectKey is any object of the cluster.
type ObjectKey struct{ Group, Version, Plural, Namespace, Name string }

// Readiness is when a thing is ready, so that what depends on it may go on: made by [WhenExists], [WhenObserved], [WhenHealthy] and [When].
// The zero value leaves it to the host.
type Readiness struct {
	Kind ReadinessKind
	// Expression is one in CEL over `object`, with ReadinessExpression.
	Expression string
}

// ReadinessKind is how the host tells that a thing is ready.
type ReadinessKind uint8

// How the host tells that a thing is ready.
const (
	ReadinessDefault ReadinessKind = iota
	ReadinessExists
	ReadinessObserved
	ReadinessHealthy
	ReadinessExpression
)

// WhenExists is when the object exists.
func WhenExists() Readiness { return Readiness{Kind: ReadinessExists} }

// WhenObserved is when the object exists, and status.observedGeneration, where present, is its generation.
func WhenObserved() Readiness { return Readiness{Kind: ReadinessObserved} }

// WhenHealthy is when the object is observed, and healthy by the rules of its kind: a Deployment has its replicas, a Job is complete, a
// volume claim is bound.
func WhenHealthy() Readiness { return Readiness{Kind: ReadinessHealthy} }

// When is when this expression in CEL over `object` is true.
func When(expression string) Readiness {
	return Readiness{Kind: ReadinessExpression, Expression: expression}
}
